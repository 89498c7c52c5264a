import { Problem } from '../problem.ts';

/** A role: `[domain].[action]`. `api.superuser` opens every route and is required by none. */
export type Role = 'users.read' | 'users.write';

/** The calling service, as its token describes it. */
export type ServicePrincipal = {
  /** The token's `sub`. */
  readonly subject: string;
  readonly roles: readonly string[];
  /** The whole token payload. */
  readonly claims: Readonly<Record<string, unknown>>;
};

/** The caller that verified claims speak of; `sub` has been checked to be a non-empty string. */
export function principalOf(claims: Readonly<Record<string, unknown>>, rolesClaim: string): ServicePrincipal {
  return { subject: String(claims.sub), roles: rolesIn(claimNamed(rolesClaim, claims)), claims };
}

/**
 * Refuses a caller without the role; for the log, with the claim in which its roles were looked for.
 *
 * @throws {Problem} forbidden_error
 */
export function demandRole({ roles, subject }: ServicePrincipal, role: Role, rolesClaim: string): void {
  if (roles.includes(role) || roles.includes('api.superuser')) return;
  const found = roles.length > 0 ? `the roles ${roles.join(', ')}` : 'no roles';
  throw missingRole(role, `${subject} lacks the role ${role}: the claim ${rolesClaim} has ${found}`);
}

/** A caller without the role (RFC 6750 section 3.1). The reason is for the log alone. */
export function missingRole(role: Role, reason?: string): Problem {
  return new Problem('forbidden_error', {
    reason,
    headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${role}"` },
  });
}

/** An own member by that exact name goes first, so that a name with dots in it can be meant literally. */
function claimNamed(name: string, claims: Readonly<Record<string, unknown>>): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  if (!name.includes('.')) return undefined;
  return name.split('.').reduce<unknown>(memberOf, claims);
}

function memberOf(value: unknown, name: string): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function rolesIn(claim: unknown): readonly string[] {
  if (typeof claim === 'string') return claim.split(' ').filter((role) => role !== '');
  return Array.isArray(claim) && claim.every((role) => typeof role === 'string') ? claim : [];
}
