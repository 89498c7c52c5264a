import type * as z from 'zod';
import type { GatewayEvent } from '../http/gateway.ts';
import type { ValueFault, ValuePlace } from '../http/problem.ts';
import { detailOf, pointerTo, valuesNotAllowed } from '../http/value-faults.ts';
import { readQuery } from './query-values.ts';
import { parseBody } from './request-body.ts';

type Part = 'headers' | 'params' | 'query' | 'body';

export type RequestValues = Readonly<Record<Part, unknown>>;

/** The schemas of a request's values. Those of header fields have the documented names. */
export type RequestSchemas = { readonly [Name in Part]?: z.ZodObject | undefined } & {
  /** Finds faults that only path and query together show. They are reported beside all others. */
  readonly acrossPathAndQuery?:
    | ((path: GivenValues, query: GivenValues) => readonly ValueFault[])
    | undefined;
};

type GivenValues = Readonly<Record<string, string | undefined>>;

type Checked = {
  readonly value?: unknown;
  readonly faults: readonly ValueFault[];
  readonly given?: GivenValues;
};

const NOTHING: Checked = { faults: [] };

/**
 * Checks header, path, query and body values, and reports all faults together. The texts are those of the schemas or of
 * `value-faults.ts`, never zod's.
 */
export function validateValues(schemas: RequestSchemas, event: GatewayEvent): RequestValues {
  const { headers, params, query, body, acrossPathAndQuery } = schemas;
  const { pathParameters = {}, rawQueryString } = event;
  const fields = headers ? checkHeaders(headers, event.headers) : NOTHING;
  const path = params ? check(params, pathParameters, inParameter) : NOTHING;
  const search = query ? checkQuery(query, rawQueryString) : NOTHING;
  const across = acrossPathAndQuery?.(pathParameters, search.given ?? {}) ?? [];
  const content = body ? checkBody(body, event) : NOTHING;
  const errors = [fields.faults, path.faults, search.faults, across, content.faults];
  if (errors.some(({ length }) => length > 0)) throw valuesNotAllowed(errors.flat());
  return { headers: fields.value, params: path.value, query: search.value, body: content.value };
}

/** Turns the path of a value in its schema into its place in the request. */
type Locate = (path: readonly PropertyKey[]) => ValuePlace;

const inHeader: Locate = ([name]) => ({ header: String(name) });
const inParameter: Locate = ([name]) => ({ parameter: String(name) });
const inBody: Locate = (path) => ({ pointer: pointerTo(path) });

function check(schema: z.ZodObject, given: unknown, locate: Locate): Checked {
  const { data, error } = schema.safeParse(given, { error: detailOf });
  if (!error) return { value: data, faults: [] };
  return { faults: error.issues.map(({ path, message }) => ({ ...locate(path), detail: message })) };
}

function checkHeaders(schema: z.ZodObject, given: GatewayEvent['headers']): Checked {
  const fields = Object.keys(schema.shape).map((name) => [name, given[name.toLowerCase()]]);
  return check(schema, Object.fromEntries(fields), inHeader);
}

function checkQuery(schema: z.ZodObject, query: string): Checked {
  const { given, faults } = readQuery(Object.keys(schema.shape), query);
  const checked = check(schema, given, inParameter);
  return { value: checked.value, given, faults: [...faults, ...checked.faults] };
}

function checkBody(schema: z.ZodObject, event: GatewayEvent): Checked {
  const { value, fault } = parseBody(event);
  if (fault) return { faults: [{ pointer: '#', detail: fault }] };
  const checked = check(schema, value, inBody);
  // Without its unknown members, which may be most of it, the body takes less memory while the request is served.
  Object.assign(event, { body: undefined });
  return checked;
}
