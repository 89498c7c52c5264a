import type { oas31, ZodOpenApiRequestBodyObject } from 'zod-openapi';
import type { Role } from '../auth/role.ts';
import { listMediaTypes } from '../endpoint/media-type.ts';
import type { Route } from '../endpoint/route.ts';
import { MAX_HEAD_LENGTH } from '../text.ts';
import { exampleOf } from './example.ts';

export const PRECONDITIONS = [
  precondition('If-Match', 'one of these versions (RFC 9110 section 13.1.1)', '"3"'),
  precondition('If-None-Match', 'none of these versions (RFC 9110 section 13.1.2)', '"2"'),
];

function precondition(name: string, versions: string, example: string): oas31.ParameterObject {
  const description = `Entity tags, or \`*\`: the request applies only if the user has ${versions}.`;
  // Any field value (RFC 9110 section 5.5). A value that is not a tag matches nothing.
  const pattern = '^[\\t\\x20-\\x7e\\x80-\\xff]*$';
  // Swagger UI would send an `example` with the first request.
  const schema: oas31.SchemaObject = {
    type: 'string',
    maxLength: MAX_HEAD_LENGTH,
    pattern,
    examples: [example],
  };
  return { name, in: 'header', description, schema };
}

/** The body of a route, in each of its preferred media types. */
export function requestBodyOf({ method, body }: Route): ZodOpenApiRequestBodyObject | undefined {
  if (!body) return undefined;
  const content = { schema: body, example: exampleOf(body) };
  return {
    required: true,
    content: Object.fromEntries(listMediaTypes(method).map((type) => [type, content])),
  };
}

/** How callers get a token: at `tokenUrl`, which is absolute, or relative to the document. */
export function oauth2(tokenUrl: string, deleteRole: Role): oas31.SecuritySchemeObject {
  const mayDelete = deleteRole === 'users.write';
  const scopes = {
    'users.read': 'Read users.',
    'users.write': mayDelete ? 'Create, change and delete users.' : 'Create and change users.',
    ...(!mayDelete && { 'users.delete': 'Delete users.' }),
    'api.superuser': 'Every operation, in place of any other role: for local tests and master scripts.',
  };
  return {
    type: 'oauth2',
    description:
      'Client credentials grant: enter the id and the secret of a client of the authorization server, and select its roles as scopes. ' +
      'The issuer of `npm run dev` accepts any id and any secret. Tokens are JSON Web Tokens, validated as RFC8725 requires.',
    flows: { clientCredentials: { tokenUrl, scopes } },
  };
}
