import { createDocument, type ZodOpenApiObject } from 'zod-openapi';
import { requiredRole } from '../auth/principal.ts';
import type { Route } from '../http/route.ts';
import type { Settings } from '../settings/settings.ts';
import { REQUEST_ID_FORM } from '../text.ts';
import { VERSION } from '../version.ts';
import { introduction } from './explanations.ts';
import { allRefusals } from './refusals.ts';
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
      description: introduction(requestIdHeader, allRefusals(routes, bodyLimit)),
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
        },
        NoSniffing: {
          description: 'Clients must not guess another media type than Content-Type.',
          required: true,
          schema: { type: 'string', enum: ['nosniff'] },
        },
      },
    },
  };
  return createDocument(document, { override: ({ jsonSchema }) => leaveOpen(jsonSchema) });
}

/** An additional member is not a breaking change, so no schema may forbid it. */
function leaveOpen(schema: { additionalProperties?: unknown }): void {
  delete schema.additionalProperties;
}

function operationOf(route: Route, routes: readonly Route[], settings: DocumentedSettings) {
  const { operationId, summary, kind, path, role, params, query, headers, conditional } = route;
  const requestBody = requestBodyOf(route);
  return {
    operationId,
    summary,
    description:
      role === 'public' ? 'Needs no token.' : `Requires the role \`${role}\` or \`api.superuser\`.`,
    // The resource: `/api/v{version}/{resource}/…`.
    tags: [kind === 'probe' ? 'probes' : (path.split('/')[3] ?? '')],
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
