import { bearerTokenOf } from '../auth/bearer-token.ts';
import { demandRole, type Role, type ServicePrincipal } from '../auth/principal.ts';
import type { VerifyToken } from '../auth/token-verifier.ts';
import type { Middleware } from './middleware.ts';

/** Lets only callers pass that prove who they are (else 401) and hold the role (else 403). */
export function authenticate(verifyToken: VerifyToken, role: Role, rolesClaim: string): Middleware {
  return {
    before({ event, context }) {
      const admit = (principal: ServicePrincipal) => {
        demandRole(principal, role, rolesClaim);
        context.principal = principal;
      };
      const proven = verifyToken(bearerTokenOf(event.headers.authorization));
      return proven instanceof Promise ? proven.then(admit) : admit(proven);
    },
  };
}
