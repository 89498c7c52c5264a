import { Problem } from '../http/problem.ts';
import type { ServicePrincipal } from './principal.ts';

/** A role: `[domain].[action]`. `api.superuser` is accepted on every route, and no route requires it. */
export type Role = 'users.read' | 'users.write' | 'users.delete';

/** The role that a route requires. SVC_OAUTH_DELETE_ROLE names the one in place of `users.delete`. */
export function requiredRole(role: Role, deleteRole: Role): Role {
  return role === 'users.delete' ? deleteRole : role;
}

/**
 * The caller, if it has the role. The reason of the refusal, for the log, names the claim that was read.
 *
 * @throws {Problem} forbidden_error
 */
export function demandRole(caller: ServicePrincipal, role: Role, rolesClaim: string): ServicePrincipal {
  const { roles, subject } = caller;
  if (roles.includes(role) || roles.includes('api.superuser')) return caller;
  const found = roles.length > 0 ? `the roles ${roles.join(', ')}` : 'no roles';
  throw missingRole(role, `${subject} lacks the role ${role}: the claim ${rolesClaim} has ${found}`);
}

/** The refusal of a caller without the role (RFC 6750 section 3.1). The reason is only for the log. */
export function missingRole(role: Role, reason?: string): Problem {
  return new Problem('forbidden_error', {
    reason,
    headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${role}"` },
  });
}
