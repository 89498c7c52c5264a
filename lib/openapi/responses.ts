import * as z from 'zod';
import type { oas31, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { type Problem, problemDocument, problemHeaders } from '../http/problem.ts';
import type { Route } from '../http/route.ts';
import { exampleOf, examplePath } from './example.ts';
import { explanationOf } from './explanations.ts';
import { Problem as ProblemSchema } from './problem-schema.ts';
import { refusalsOf } from './refusals.ts';

/** The headers of every response, by reference. */
type CommonHeaders = Readonly<Record<string, oas31.ReferenceObject>>;

const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'Problems must not be cached.',
  'WWW-Authenticate': 'What the token lacks (RFC 6750 section 3).',
  'Accept-Patch': 'The media types that PATCH takes (RFC 5789 section 3.1).',
  'Retry-After': 'Seconds to wait before a retry.',
};

/** The common parts of a route's responses, and the links of its success. */
type ResponseContext = {
  readonly common: CommonHeaders;
  /** In bytes. */
  readonly bodyLimit: number;
  readonly links: oas31.LinksObject;
};

/** The success of a route, and every problem that it can return, by status. */
export function responsesOf(
  route: Route,
  { common, bodyLimit, links }: ResponseContext,
): ZodOpenApiResponsesObject {
  const instance = examplePath(route.path, route.params);
  const byStatus = Map.groupBy(refusalsOf(route, bodyLimit), ({ status }) => String(status));
  return {
    [route.success]: { ...successOf(route, common), ...(Object.keys(links).length > 0 && { links }) },
    ...(route.reply.other && { [route.reply.other.status]: otherSuccessOf(route, common) }),
    ...(route.conditional === 'reading' && { 304: notModified(route, common) }),
    ...Object.fromEntries(
      [...byStatus].map(([status, refusals]) => [status, refusalOf(refusals, instance, common)]),
    ),
  };
}

function successOf(
  { success, reply }: Pick<Route, 'reply' | 'success'>,
  common: CommonHeaders,
): ZodOpenApiResponseObject {
  const own = Object.entries(reply.headers).map(([header, { description, values, example, isOptional }]) => [
    header,
    {
      description,
      required: !isOptional,
      schema: { type: 'string', ...values },
      ...(example !== undefined && { example }),
    },
  ]);
  const { mediaType, onDemand, schema } = reply;
  const mediaTypes = [mediaType, onDemand].flatMap((type) => type?.split(';', 1) ?? []);
  return {
    description: success === 201 ? 'Created' : success === 204 ? 'Done' : 'OK',
    headers: { ...Object.fromEntries(own), ...common },
    ...(schema && {
      content: Object.fromEntries(mediaTypes.map((type) => [type, { schema, example: exampleOf(schema) }])),
    }),
  };
}

function otherSuccessOf(
  { reply, success }: Pick<Route, 'reply' | 'success'>,
  common: CommonHeaders,
): ZodOpenApiResponseObject {
  const { description = '', schema = z.unknown() } = reply.other ?? {};
  return { ...successOf({ success, reply: { ...reply, schema } }, common), description };
}

/** The headers of the success, without its content. */
function notModified(route: Route, common: CommonHeaders): ZodOpenApiResponseObject {
  const { headers = {} } = successOf(route, common);
  return { description: 'Not Modified: the caller has this version.', headers };
}

/** All problems of one status as one response, with an example of each. */
function refusalOf(
  refusals: readonly Problem[],
  instance: string,
  common: CommonHeaders,
): ZodOpenApiResponseObject {
  const examples = refusals.map((refusal) => [
    nameIn(refusals, refusal),
    { summary: refusal.detail, value: problemDocument(refusal, instance) },
  ]);
  return {
    description: explanationOf(refusals),
    headers: { ...documentedHeaders(refusals), ...common },
    content: {
      'application/problem+json': { schema: ProblemSchema, examples: Object.fromEntries(examples) },
    },
  };
}

/** The code of the refusal. If several refusals share it, they are numbered from the second one on. */
function nameIn(refusals: readonly Problem[], refusal: Problem): string {
  const index = refusals.filter(({ code }) => code === refusal.code).indexOf(refusal);
  return index === 0 ? refusal.code : `${refusal.code}_${index + 1}`;
}

/** The headers of these refusals. A header is required if all of them have it. */
function documentedHeaders(refusals: readonly Problem[]): oas31.HeadersObject {
  const byName = Map.groupBy(
    refusals.flatMap((refusal) => Object.entries(problemHeaders(refusal))),
    ([header]) => header,
  );
  byName.delete('Content-Type');
  return Object.fromEntries(
    [...byName].map(([header, fields]) => {
      const values = new Set(fields.map(([, value]) => value));
      return [header, { ...documentedHeader(header, values), required: fields.length === refusals.length }];
    }),
  );
}

function documentedHeader(header: string, values: ReadonlySet<string>): oas31.HeaderObject {
  const schema: oas31.SchemaObject =
    header === 'Retry-After'
      ? { type: 'integer', format: 'int32', minimum: 0, maximum: 60, examples: [...values].map(Number) }
      : { type: 'string', enum: [...values] };
  return { description: HEADERS[header] ?? '', schema };
}
