import { readBearerToken } from '../../auth/bearer-token.ts';
import { demandRole, type Role, type ServicePrincipal } from '../../auth/principal.ts';
import type { TokenVerifier } from '../../auth/token-verifier.ts';
import type { Middleware, RequestContext } from './middleware.ts';

/** Accepts only callers that prove their identity (otherwise 401) and have the role (otherwise 403). */
export function authenticate(tokenVerifier: TokenVerifier, role: Role, rolesClaim: string): Middleware {
  return {
    before({ event, context }) {
      const proven = tokenVerifier.verify(readBearerToken(event.headers.authorization));
      if (proven instanceof Promise) return proven.then((principal) => admit(principal, context));
      return admit(proven, context);
    },
  };

  function admit(principal: ServicePrincipal, context: RequestContext): void {
    demandRole(principal, role, rolesClaim);
    context.principal = principal;
  }
}
