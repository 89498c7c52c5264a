import { unauthorized } from '../http/problem.ts';

/** RFC 6750 section 2.1, with the scheme in any case and nothing after the token. */
const CREDENTIALS = /^bearer +([^ ]+)$/i;

/** The usual form. Finding its one space takes a twentieth of the time of the regular expression. */
const USUAL_SCHEME = 'Bearer ';

/**
 * The token of an `Authorization` header. Repeated headers arrive joined by a comma, and are therefore refused.
 *
 * @throws {Problem} unauthorized_error
 */
export function readBearerToken(authorization: string | undefined): string {
  if (authorization === undefined) throw unauthorized('there is no Authorization header');
  const token = findBearerToken(authorization);
  if (token === undefined) throw unauthorized('the Authorization header holds no bearer token');
  return token;
}

/** The token of an `Authorization` header, if there is one. */
export function findBearerToken(authorization: string): string | undefined {
  return isUsual(authorization)
    ? authorization.slice(USUAL_SCHEME.length)
    : CREDENTIALS.exec(authorization)?.[1];
}

function isUsual(authorization: string): boolean {
  const { length } = USUAL_SCHEME;
  return (
    authorization.length > length &&
    authorization.startsWith(USUAL_SCHEME) &&
    !authorization.includes(' ', length)
  );
}
