import httpJsonBodyParser from '@middy/http-json-body-parser';
import type * as z from 'zod';
import type { GatewayEvent } from '../http/gateway.ts';
import type { ValueFault, ValuePlace } from '../http/problem.ts';
import { detailOf, pointerTo, valuesNotAllowed } from '../http/value-faults.ts';

/** The schemas of a request's values. Those of header fields have the documented names. */
export type RequestSchemas = {
  readonly headers?: z.ZodObject | undefined;
  readonly params?: z.ZodObject | undefined;
  readonly query?: z.ZodObject | undefined;
  readonly body?: z.ZodObject | undefined;
  /** Finds faults that only path and query together show. They are reported beside all others. */
  readonly acrossPathAndQuery?:
    | ((path: GivenValues, query: GivenValues) => readonly ValueFault[])
    | undefined;
};

export type RequestValues = {
  readonly headers: unknown;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
};

type GivenValues = Readonly<Record<string, string | undefined>>;

type Checked = {
  readonly value?: unknown;
  readonly faults: readonly ValueFault[];
  readonly given?: GivenValues;
};

const NOTHING: Checked = { faults: [] };

/**
 * Checks header, path, query and body values, and reports all faults together. It runs the body parser itself for this
 * reason. The texts are those of the schemas or of `value-faults.ts`, never zod's. The parser takes a fourteenth of the
 * time of a batch.
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

/** The form in which some HTTP libraries send lists: `ids[]`, `ids[0]`. It would be an unknown parameter. */
const BRACKETS = /^(.*)\[\d{0,5}\]$/s;
const NO_BRACKETS = 'must not have brackets behind its name; the items of a list are separated by commas';

/**
 * Repeated parameters, names with brackets and values that are not UTF-8 are faults. Unknown parameters are ignored.
 */
function checkQuery(schema: z.ZodObject, query: string): Checked {
  const parsed = parseQuery(query);
  const given: Record<string, string> = {};
  const faults: ValueFault[] = [];
  const bracketed = /\[|%5b/i.test(query) ? [...parsed.keys()].map((name) => BRACKETS.exec(name)?.[1]) : [];
  for (const name of Object.keys(schema.shape)) {
    const [value, ...others] = parsed.getAll(name);
    if (bracketed.includes(name)) faults.push({ parameter: name, detail: NO_BRACKETS });
    else if (value === undefined) continue;
    else if (others.length > 0) faults.push({ parameter: name, detail: 'must not be repeated' });
    else if (!isUtf8(value, name, query)) faults.push({ parameter: name, detail: 'must be UTF-8' });
    else given[name] = value;
  }
  const checked = check(schema, given, inParameter);
  return { value: checked.value, given, faults: [...faults, ...checked.faults] };
}

/** URLSearchParams would remove a question mark at the beginning. */
function parseQuery(query: string): URLSearchParams {
  return new URLSearchParams(`&${query}`);
}

/** Bytes that are not UTF-8 are decoded to U+FFFD. The value then has more of these than were sent. */
function isUtf8(value: string, name: string, query: string): boolean {
  if (!value.includes('\ufffd')) return true;
  return !parseQuery(query.replace(/%EF%BF%BD|\ufffd/gi, '.'))
    .get(name)
    ?.includes('\ufffd');
}

function checkBody(schema: z.ZodObject, event: GatewayEvent): Checked {
  const json = parseJson(event);
  if (json.faults.length > 0) return json;
  const checked = check(schema, json.value, inBody);
  // Without its unknown members, which may be most of it, the body takes less memory while the request is served.
  Object.assign(event, { body: undefined });
  return checked;
}

const { before: bodyParser } = httpJsonBodyParser({ disableContentTypeCheck: true });

function parseJson(event: GatewayEvent): Checked {
  const { body, isBase64Encoded } = event;
  if (isBase64Encoded) return createBodyFault('must be UTF-8');
  if (!body) return createBodyFault('must not be empty');
  try {
    bodyParser?.({ event } as never);
    return { value: event.body, faults: [] };
  } catch {
    return parseWithoutGuard(body);
  }
}

/** The parser also refuses members such as `__proto__`. Here they are unknown members, and are ignored. */
function parseWithoutGuard(body: string): Checked {
  try {
    return { value: JSON.parse(body), faults: [] };
  } catch {
    return createBodyFault('must be valid JSON');
  }
}

const createBodyFault = (detail: string): Checked => ({ faults: [{ pointer: '#', detail }] });
