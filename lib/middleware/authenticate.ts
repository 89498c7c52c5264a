import { bearerTokenOf } from '../auth/bearer-token.ts';
import { demandRole, type Role } from '../auth/principal.ts';
import type { VerifyToken } from '../auth/token-verifier.ts';
import type { Middleware } from './middleware.ts';

/** Lets only callers pass that prove who they are (else 401) and hold the role (else 403). */
export function authenticate(verifyToken: VerifyToken, role: Role, rolesClaim: string): Middleware {
  return {
    async before({ event, context }) {
      const principal = await verifyToken(bearerTokenOf(event.headers.authorization));
      demandRole(principal, role, rolesClaim);
      context.principal = principal;
    },
  };
}
