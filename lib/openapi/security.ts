import type { oas31 } from 'zod-openapi';
import type { Role } from '../auth/principal.ts';
import type { Route } from '../http/route.ts';

const READ = { 'users.read': 'Read users.' };
const EVERYTHING = {
  'api.superuser': 'Every operation, in place of any other role: for local tests and master scripts.',
};

/** The roles by the role that a deletion requires. */
const SCOPES: Readonly<Partial<Record<Role, Readonly<Record<string, string>>>>> = {
  'users.write': { ...READ, 'users.write': 'Create, change and delete users.', ...EVERYTHING },
  'users.delete': {
    ...READ,
    'users.write': 'Create and change users.',
    'users.delete': 'Delete users.',
    ...EVERYTHING,
  },
};

/** The token endpoint for callers. The URL is absolute, or relative to the document. */
export function oauth2(tokenUrl: string, deleteRole: Role): oas31.SecuritySchemeObject {
  return {
    type: 'oauth2',
    description:
      'Client credentials grant. The roles of the token are its scopes. Tokens are JSON Web Tokens, validated as RFC8725 requires.',
    flows: { clientCredentials: { tokenUrl, scopes: { ...SCOPES[deleteRole] } } },
  };
}

/** The security requirement of a route. */
export function securityOf({ role }: Route): oas31.SecurityRequirementObject[] {
  return role === 'public' ? [] : [{ oauth2: [role] }];
}

/** The same as text. */
export function demandOf({ role }: Route): string {
  return role === 'public' ? 'Needs no token.' : `Requires the role \`${role}\` or \`api.superuser\`.`;
}
