import httpJsonBodyParser from '@middy/http-json-body-parser';
import type * as z from 'zod';
import { Problem, type ValueFault } from '../problem.ts';
import { detailOf } from './fault-detail.ts';
import type { Middleware, RequestInStack } from './middleware.ts';
import { queryParameters } from './query-parameters.ts';

/** The schemas of what a request carries. */
export type RequestSchemas = {
  readonly params?: z.ZodObject | undefined;
  readonly query?: z.ZodObject | undefined;
  readonly body?: z.ZodObject | undefined;
};

type Checked = { readonly value?: unknown; readonly faults: readonly ValueFault[] };

const NOTHING: Checked = { faults: [] };

/** Checks path, query and body values, and refuses all that is wrong with them at once. */
export function validate({ params, query, body }: RequestSchemas): Middleware {
  return {
    before(request) {
      const { pathParameters, rawQueryString } = request.event;
      const path = params ? checkParameters(params, pathParameters ?? {}) : NOTHING;
      const search = query ? checkQuery(query, rawQueryString) : NOTHING;
      const content = body ? checkBody(body, request) : NOTHING;
      const errors = [...path.faults, ...search.faults, ...content.faults];
      if (errors.length > 0) throw valuesNotAllowed(errors);
      request.context.values = { params: path.value, query: search.value, body: content.value };
    },
  };
}

/** Values that the schemas of a route refuse, all at once. */
export function valuesNotAllowed(errors: readonly ValueFault[]): Problem {
  return new Problem('validation_error', { detail: 'Some values are not allowed: see errors.', errors });
}

function checkParameters(schema: z.ZodObject, given: Readonly<Record<string, unknown>>): Checked {
  const { data, error } = schema.safeParse(given, { error: detailOf });
  if (!error) return { value: data, faults: [] };
  return {
    faults: error.issues.map(({ path, message }) => ({ parameter: String(path[0]), detail: message })),
  };
}

function checkQuery(schema: z.ZodObject, query: string): Checked {
  const { given, faults } = queryParameters(query, Object.keys(schema.shape));
  const checked = checkParameters(schema, given);
  return { value: checked.value, faults: [...faults, ...checked.faults] };
}

function checkBody(schema: z.ZodObject, request: RequestInStack): Checked {
  const json = parseJson(request);
  if (json.faults.length > 0) return json;
  const { data, error } = schema.safeParse(json.value, { error: detailOf });
  if (!error) return { value: data, faults: [] };
  return { faults: error.issues.map(({ path, message }) => ({ pointer: pointerTo(path), detail: message })) };
}

const { before: bodyParser } = httpJsonBodyParser({ disableContentTypeCheck: true });

function parseJson(request: RequestInStack): Checked {
  const { body, isBase64Encoded } = request.event;
  if (isBase64Encoded) return wholeBody('must be UTF-8');
  if (!body) return wholeBody('must have content');
  try {
    bodyParser?.(request as never);
    return { value: request.event.body, faults: [] };
  } catch {
    return parseUnguarded(body);
  }
}

/** The parser also refuses members such as `__proto__`; to us they are unknown members like any other. */
function parseUnguarded(body: string): Checked {
  try {
    return { value: JSON.parse(body), faults: [] };
  } catch {
    return wholeBody('must be JSON');
  }
}

const wholeBody = (detail: string): Checked => ({ faults: [{ pointer: '#', detail }] });

/** RFC 6901 section 6: a JSON pointer in a URI fragment. */
function pointerTo(path: readonly PropertyKey[]): string {
  const escaped = path.map((name) => String(name).replaceAll('~', '~0').replaceAll('/', '~1'));
  return ['#', ...escaped.map(encodeURIComponent)].join('/');
}
