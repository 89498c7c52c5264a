import type { GatewayEvent } from '../http/gateway.ts';
import { unauthorized } from '../http/problem.ts';
import type { ServicePrincipal } from './principal.ts';
import { demandRole, type Role } from './role.ts';
import type { TokenVerifier } from './token-verifier.ts';

/** The scheme, in any case, and the spaces before the token (RFC 6750 section 2.1). */
const SCHEME = /^bearer +/i;

/**
 * The caller of a request that proves its identity and has the role.
 *
 * @throws {Problem} unauthorized_error, forbidden_error, service_unavailable_error; a returned promise rejects with them
 */
export function authenticate(
  tokenVerifier: TokenVerifier,
  role: Role,
  rolesClaim: string,
  { headers: { authorization } }: GatewayEvent,
): ServicePrincipal | Promise<ServicePrincipal> {
  if (authorization === undefined) throw unauthorized('there is no Authorization header');
  const token = findBearerToken(authorization);
  if (token === undefined) throw unauthorized('the Authorization header holds no bearer token');
  const proven = tokenVerifier.verify(token);
  return proven instanceof Promise
    ? proven.then((principal) => demandRole(principal, role, rolesClaim))
    : demandRole(proven, role, rolesClaim);
}

/**
 * The token of an `Authorization` header, if there is one. Nothing may follow it: repeated headers arrive joined by a
 * comma, and are therefore refused.
 */
export function findBearerToken(authorization: string): string | undefined {
  const [scheme] = SCHEME.exec(authorization) ?? [];
  const token = scheme && authorization.slice(scheme.length);
  return token && !token.includes(' ') ? token : undefined;
}
