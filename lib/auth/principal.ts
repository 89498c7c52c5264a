import type { Claims } from './claims.ts';

/** The calling service, as described by its token. */
export type ServicePrincipal = {
  /** The token's `sub`. */
  readonly subject: string;
  readonly roles: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
};

export function readPrincipal(claims: Claims, rolesClaim: string): ServicePrincipal {
  return { subject: claims.sub, roles: parseRoles(findClaim(rolesClaim, claims)), claims };
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
