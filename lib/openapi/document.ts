import { createDocument, type ZodOpenApiObject } from 'zod-openapi';
import { requiredRole } from '../auth/role.ts';
import type { Route } from '../endpoint/route.ts';
import { type Problem, statusOf, typeOf } from '../http/problem.ts';
import { REQUEST_ID_FORM } from '../http/request-id.ts';
import type { Settings } from '../settings/settings.ts';
import { VERSION } from '../version.ts';
import { Problem as ProblemSchema } from './problem-schema.ts';
import { allProblems, explanationOf } from './problems.ts';
import { oauth2, PRECONDITIONS, requestBodyOf } from './request.ts';
import { responsesOf } from './responses.ts';

type DocumentedSettings = Pick<Settings, 'requestIdHeader' | 'bodyLimit'> & {
  readonly oauth: Pick<Settings['oauth'], 'deleteRole'>;
};

/**
 * Describes the routes of an instance as an OpenAPI 3.1 document, which contains only JSON values. Callers get their
 * tokens at `tokenUrl`, which is absolute, or relative to the document.
 */
export function openApiDocument(declared: readonly Route[], settings: DocumentedSettings, tokenUrl: string) {
  const { requestIdHeader, bodyLimit } = settings;
  const { deleteRole } = settings.oauth;
  const routes = declared.map((route) =>
    route.role === 'public' ? route : { ...route, role: requiredRole(route.role, deleteRole) },
  );
  const byPath = Map.groupBy(routes, ({ path }) => path);
  const operationsOf = (group: readonly Route[]) =>
    Object.fromEntries(
      group.map((route) => [route.method.toLowerCase(), operationOf(route, routes, settings)]),
    );
  const document: ZodOpenApiObject = {
    openapi: '3.1.1',
    info: {
      title: 'User Management Service',
      version: VERSION,
      description: introduction(requestIdHeader),
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/', description: 'The host that serves this document.' }],
    tags: [
      { name: 'users', description: 'User records.' },
      { name: 'probes', description: 'Probes for orchestrators.' },
    ],
    paths: Object.fromEntries([...byPath].map(([path, group]) => [path, operationsOf(group)])),
    components: {
      securitySchemes: { oauth2: oauth2(tokenUrl, deleteRole) },
      parameters: {
        RequestId: {
          name: requestIdHeader,
          in: 'header',
          description: 'Identifies the request. If it is absent or not valid, the service generates a UUID.',
          schema: { type: 'string' },
        },
      },
      headers: {
        RequestId: {
          description: 'Identifies the request: what the caller sent, or a new UUID.',
          required: true,
          schema: { type: 'string', ...REQUEST_ID_FORM },
          example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
        },
        NoSniffing: {
          description: 'Clients must not guess another media type than Content-Type.',
          required: true,
          schema: { type: 'string', enum: ['nosniff'] },
        },
      },
    },
  };
  // An additional member is not a breaking change, so no schema may forbid it.
  return createDocument(document, {
    override({ jsonSchema, zodSchema }) {
      delete jsonSchema.additionalProperties;
      if (zodSchema === ProblemSchema)
        jsonSchema.description = tableOfProblems(allProblems(routes, bodyLimit));
    },
  });
}

function operationOf(route: Route, routes: readonly Route[], settings: DocumentedSettings) {
  const { operationId, summary, isProbe, path, role, params, query, headers, conditional } = route;
  const requestBody = requestBodyOf(route);
  return {
    operationId,
    summary,
    description:
      role === 'public' ? 'Needs no token.' : `Requires the role \`${role}\` or \`api.superuser\`.`,
    // The resource: `/api/v{version}/{resource}/…`.
    tags: [isProbe ? 'probes' : (path.split('/')[3] ?? '')],
    security: role === 'public' ? [] : [{ oauth2: [role] }],
    requestParams: {
      ...(params && { path: params }),
      ...(query && { query }),
      ...(headers && { header: headers }),
    },
    parameters: [...(conditional ? PRECONDITIONS : []), { $ref: '#/components/parameters/RequestId' }],
    ...(requestBody && { requestBody }),
    responses: responsesOf(route, routes, settings),
  };
}

/** All problems of the service. The table is at the end of the pages: it is longer than the operations. */
function tableOfProblems(problems: readonly Problem[]): string {
  const byCode = [...Map.groupBy(problems, ({ code }) => code)];
  const rows = byCode.map(
    ([code, same]) => `| ${statusOf(code)} | \`${typeOf(code)}\` | ${explanationOf(same)} |`,
  );
  return `A problem document (RFC 9457).

| status | type | when |
| --- | --- | --- |
${rows.join('\n')}
`;
}

function introduction(requestIdHeader: string): string {
  return `Stores user records for other services.

## Authentication

A caller gets a signed JSON Web Token from the authorization server with the OAuth 2.0 client credentials grant, and
sends it as \`Authorization: Bearer <token>\`. Each operation names the role that it requires. The role
\`api.superuser\` is accepted by all operations. It is for local tests and administrators' scripts. The probes need no token.

## Every response

The header \`${requestIdHeader}\` identifies the request in the response and in the log. \`HEAD\` works wherever \`GET\` does,
\`OPTIONS\` lists the methods of a path. A trailing slash makes no difference.

## Problems

Every refusal is a problem document (RFC 9457). The schema \`Problem\`, below the operations, lists them all.
`;
}
