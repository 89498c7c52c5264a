import { unauthorized } from '../http/problem.ts';

/** The scheme, in any case, and the spaces before the token (RFC 6750 section 2.1). */
const SCHEME = /^bearer +/i;

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

/** The token of an `Authorization` header, if there is one. Nothing may follow it. */
export function findBearerToken(authorization: string): string | undefined {
  const [scheme] = SCHEME.exec(authorization) ?? [];
  const token = scheme && authorization.slice(scheme.length);
  return token && !token.includes(' ') ? token : undefined;
}
