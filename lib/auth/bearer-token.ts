import { unauthorized } from '../problem.ts';

/** RFC 6750 section 2.1, with the scheme in any case and nothing after the token. */
const CREDENTIALS = /^bearer +([^ ]+)$/i;

/**
 * The token of an `Authorization` header. Repeated headers arrive joined by a comma, and so are refused.
 *
 * @throws {Problem} unauthorized_error
 */
export function bearerTokenOf(authorization: string | undefined): string {
  if (authorization === undefined) throw unauthorized('there is no Authorization header');
  const token = CREDENTIALS.exec(authorization)?.[1];
  if (token === undefined) throw unauthorized('the Authorization header holds no bearer token');
  return token;
}
