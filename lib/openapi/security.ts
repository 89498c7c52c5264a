import type { oas31 } from 'zod-openapi';
import type { Role } from '../auth/principal.ts';
import type { Route } from '../http/route.ts';

const SCOPES: Readonly<Record<Role | 'api.superuser', string>> = {
  'users.read': 'Read users.',
  'users.write': 'Create, change and delete users.',
  'api.superuser': 'Every operation, in place of any other role: for local tests and master scripts.',
};

/** The token endpoint for callers. The URL is absolute, or relative to the document. */
export function oauth2(tokenUrl: string): oas31.SecuritySchemeObject {
  return {
    type: 'oauth2',
    description:
      'Client credentials grant. The roles of the token are its scopes. Tokens are JSON Web Tokens, validated as RFC8725 requires.',
    flows: { clientCredentials: { tokenUrl, scopes: { ...SCOPES } } },
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
