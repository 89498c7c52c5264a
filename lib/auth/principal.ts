import { Problem } from '../http/problem.ts';
import type { Claims } from './claims.ts';

/** A role: `[domain].[action]`. `api.superuser` is accepted on every route, and no route requires it. */
export type Role = 'users.read' | 'users.write' | 'users.delete';

/** The calling service, as described by its token. */
export type ServicePrincipal = {
  /** The token's `sub`. */
  readonly subject: string;
  readonly roles: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
};

/** The caller in verified claims. */
export function readPrincipal(claims: Claims, rolesClaim: string): ServicePrincipal {
  return { subject: claims.sub, roles: parseRoles(findClaim(rolesClaim, claims)), claims };
}

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

/** An own member with exactly this name comes first, so that a name may contain dots. */
function findClaim(name: string, claims: Readonly<Record<string, unknown>>): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split('.').reduce<unknown>(getMember, claims);
}

function getMember(value: unknown, name: string): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function parseRoles(claim: unknown): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ').filter((role) => role !== '');
  return Array.isArray(claim) && claim.every((role) => typeof role === 'string') ? claim : [];
}
