import { readBearerToken } from '../../auth/bearer-token.ts';
import { demandRole, type Role, type ServicePrincipal } from '../../auth/principal.ts';
import type { TokenVerifier, VerifiedToken } from '../../auth/token-verifier.ts';
import type { GatewayEvent } from '../gateway.ts';

/** The member for the verified token of an event. JSON has no symbols, so an invocation cannot set it. */
export const VERIFIED_TOKEN = Symbol('verified token');

/** An event for which the host has already looked for its token among the verified ones. */
export type RecalledEvent = GatewayEvent & { readonly [VERIFIED_TOKEN]?: VerifiedToken | undefined };

/** The caller. Accepts only callers that prove their identity (otherwise 401) and have the role (otherwise 403). */
export function authenticate(
  tokenVerifier: TokenVerifier,
  role: Role,
  rolesClaim: string,
  { headers, [VERIFIED_TOKEN]: known }: RecalledEvent,
): ServicePrincipal | Promise<ServicePrincipal> {
  const proven = tokenVerifier.verify(readBearerToken(headers.authorization), known);
  return proven instanceof Promise
    ? proven.then((principal) => demandRole(principal, role, rolesClaim))
    : demandRole(proven, role, rolesClaim);
}
