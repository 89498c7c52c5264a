import { readBearerToken } from '../../auth/bearer-token.ts';
import { demandRole, type Role, type ServicePrincipal } from '../../auth/principal.ts';
import type { TokenVerifier, VerifiedToken } from '../../auth/token-verifier.ts';
import type { GatewayEvent } from '../gateway.ts';
import type { Middleware, RequestContext } from './middleware.ts';

/** An event for which the host has already looked for its token among the verified ones. */
export type RecalledEvent = GatewayEvent & { readonly verifiedToken?: VerifiedToken | undefined };

/** Accepts only callers that prove their identity (otherwise 401) and have the role (otherwise 403). */
export function authenticate(tokenVerifier: TokenVerifier, role: Role, rolesClaim: string): Middleware {
  return {
    before({ event, context }) {
      const { headers, verifiedToken }: RecalledEvent = event;
      const proven = tokenVerifier.verify(readBearerToken(headers.authorization), verifiedToken);
      if (proven instanceof Promise) return proven.then((principal) => admit(principal, context));
      return admit(proven, context);
    },
  };

  function admit(principal: ServicePrincipal, context: RequestContext): void {
    demandRole(principal, role, rolesClaim);
    context.principal = principal;
  }
}
