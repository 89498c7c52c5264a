import type { oas31, ZodOpenApiParameters, ZodOpenApiRequestBodyObject } from 'zod-openapi';
import { listMediaTypes } from '../http/middleware/media-type.ts';
import type { Route } from '../http/route.ts';
import { MAX_HEAD_LENGTH } from '../text.ts';
import { exampleOf } from './example.ts';

/** Any field value (RFC 9110 section 5.5). A value that is not a tag matches nothing. */
const FIELD_VALUE: oas31.SchemaObject = {
  type: 'string',
  maxLength: MAX_HEAD_LENGTH,
  pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
};

const IF_MATCH: oas31.ParameterObject = {
  name: 'If-Match',
  in: 'header',
  description:
    'Entity tags, or `*`: the request applies only if the user has one of these versions (RFC 9110 section 13.1.1).',
  schema: FIELD_VALUE,
  example: '"3"',
};

const IF_NONE_MATCH: oas31.ParameterObject = {
  name: 'If-None-Match',
  in: 'header',
  description:
    'Entity tags, or `*`: the request applies only if the user has none of these versions (RFC 9110 section 13.1.2).',
  schema: FIELD_VALUE,
  example: '"2"',
};

/** The header parameter with the request ID, which every operation accepts. */
export function requestIdParameter(name: string): oas31.ParameterObject {
  return {
    name,
    in: 'header',
    description: 'Identifies the request. If it is absent or not valid, the service generates a UUID.',
    schema: { type: 'string' },
  };
}

/** The path, query and header parameters of a route. */
export function requestParamsOf({ params, query, headers }: Route): ZodOpenApiParameters {
  return { ...(params && { path: params }), ...(query && { query }), ...(headers && { header: headers }) };
}

/** The header parameters for the preconditions of a route. */
export function preconditionsOf({ conditional }: Route): oas31.ParameterObject[] {
  return conditional ? [IF_MATCH, IF_NONE_MATCH] : [];
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
