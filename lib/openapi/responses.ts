import type { oas31, ZodOpenApiResponsesObject } from 'zod-openapi';
import type { Route } from '../endpoint/route.ts';
import { type Problem, problemDocument, problemHeaders } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { exampleOf, examplePath } from './example.ts';
import { Problem as ProblemSchema } from './problem-schema.ts';
import { explanationOf, problemsOf } from './problems.ts';

const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'Problems must not be cached.',
  'WWW-Authenticate': 'What the token lacks (RFC 6750 section 3).',
  'Accept-Patch': 'The media types that PATCH takes (RFC 5789 section 3.1).',
  'Retry-After': 'Seconds to wait before a retry.',
};

const DESCRIPTIONS = { 200: 'OK', 201: 'Created', 204: 'Done' } as const;

export function responsesOf(
  route: Route,
  routes: readonly Route[],
  { requestIdHeader, bodyLimit }: Pick<Settings, 'requestIdHeader' | 'bodyLimit'>,
): ZodOpenApiResponsesObject {
  const { success = 200, reply, conditional } = route;
  const instance = examplePath(route.path, route.params);
  const byStatus = Map.groupBy(problemsOf(route, bodyLimit), ({ status }) => String(status));
  const responses = {
    [success]: { ...successOf(reply, DESCRIPTIONS[success]), ...describeLinks(route, routes) },
    ...(reply.other && {
      [reply.other.status]: successOf({ ...reply, ...reply.other }, reply.other.description),
    }),
    ...(conditional === 'reading' && {
      304: { description: 'Not Modified: the caller has this version.', headers: headersOf(reply) },
    }),
    ...Object.fromEntries(
      [...byStatus].map(([status, problems]) => [status, problemResponse(problems, instance)]),
    ),
  };
  const common = {
    'X-Content-Type-Options': { $ref: '#/components/headers/NoSniffing' },
    [requestIdHeader]: { $ref: '#/components/headers/RequestId' },
  };
  for (const response of Object.values(responses)) Object.assign(response.headers, common);
  return responses;
}

function successOf(reply: Route['reply'], description: string) {
  const { mediaType, onDemand, schema } = reply;
  const mediaTypes = [mediaType, onDemand].flatMap((type) => type?.split(';', 1) ?? []);
  return {
    description,
    headers: headersOf(reply),
    ...(schema && {
      content: Object.fromEntries(mediaTypes.map((type) => [type, { schema, example: exampleOf(schema) }])),
    }),
  };
}

function headersOf({ headers }: Route['reply']): oas31.HeadersObject {
  const described = Object.entries(headers).map(([header, { description, values, example, isOptional }]) => [
    header,
    {
      description,
      required: !isOptional,
      schema: { type: 'string', ...values },
      ...(example !== undefined && { example }),
    },
  ]);
  return Object.fromEntries(described);
}

/** All problems of one status as one response, with an example of each, named by its code and numbered from 2 on. */
function problemResponse(problems: readonly Problem[], instance: string) {
  const byCode = Map.groupBy(problems, ({ code }) => code);
  const examples = [...byCode].flatMap(([code, same]) =>
    same.map((problem, index) => [
      index === 0 ? code : `${code}_${index + 1}`,
      { summary: problem.detail, value: problemDocument(problem, instance) },
    ]),
  );
  return {
    description: explanationOf(problems),
    headers: documentedHeaders(problems),
    content: {
      'application/problem+json': { schema: ProblemSchema, examples: Object.fromEntries(examples) },
    },
  };
}

/** The headers of these problems. A header is required if all of them have it. */
function documentedHeaders(problems: readonly Problem[]): oas31.HeadersObject {
  const fields = problems.flatMap((problem) => Object.entries(problemHeaders(problem)));
  const byName = Map.groupBy(fields, ([header]) => header);
  byName.delete('Content-Type');
  const described = [...byName].map(([header, same]) => {
    const values = [...new Set(same.map(([, value]) => value))];
    const schema =
      header === 'Retry-After'
        ? { type: 'integer', format: 'int32', minimum: 0, maximum: 60, examples: values.map(Number) }
        : { type: 'string', enum: values };
    return [header, { description: HEADERS[header], schema, required: same.length === problems.length }];
  });
  return Object.fromEntries(described);
}

/**
 * Links from the response of a create to the operations on the created resource. These are the routes below its path
 * whose first parameter is the id.
 */
function describeLinks({ path, success }: Route, routes: readonly Route[]) {
  const following = routes.filter((route) => success === 201 && route.path.startsWith(`${path}{`));
  const links = following.map((route) => {
    const [, parameter = ''] = /\{(\w+)\}/.exec(route.path) ?? [];
    const { operationId, summary: description } = route;
    return [operationId, { operationId, parameters: { [parameter]: '$response.body#/id' }, description }];
  });
  return links.length > 0 ? { links: Object.fromEntries(links) } : {};
}
