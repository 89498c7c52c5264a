import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

const { paths, components } = JSON.parse(
  readFileSync(new URL('../../infra/openapi.json', import.meta.url), 'utf8'),
);

/** Paths, as expressions, with their operations. Those with parameters come last: `/users/changes` is not a user. */
const resources = Object.entries(paths)
  .sort(([one], [other]) => one.includes('{') - other.includes('{'))
  .map(([path, operations]) => [
    new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+').replace(/\/$/, '')}/?$`),
    operations,
  ]);

/** Status and title of each problem, by its code. */
export const PROBLEMS = new Map([
  ['method_not_allowed_error', { status: 405, title: 'Method Not Allowed' }],
  ...Object.values(paths)
    .flatMap((operations) => Object.values(operations))
    .flatMap(({ responses }) => Object.values(responses))
    .flatMap(({ content }) => Object.values(content?.['application/problem+json']?.examples ?? {}))
    .map(({ value }) => [value.type.split(':').at(-1), value]),
]);

/** The headers that every response has, and those of a problem that no operation documents. */
const EVERY = { 'X-Content-Type-Options': { $ref: '#/components/headers/NoSniffing' } };
const ANY_PROBLEM = {
  headers: { ...EVERY, 'Cache-Control': { required: true, schema: { const: 'no-store' } } },
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
};

/** `Location` and `Link` may be absolute behind a proxy, so they are followed instead. */
const FOLLOWED = ['Location', 'Link'];

/** The differences of a response from what the document says about its path, method and status. */
export function differencesFromDocument({ method, path, status, headers, body }) {
  const [, operations] = resources.find(([pattern]) => pattern.test(path)) ?? [];
  const operation = operations?.[(method === 'HEAD' ? 'GET' : method).toLowerCase()];
  const undocumented = method === 'OPTIONS' && status === 204 ? { headers: EVERY } : ANY_PROBLEM;
  const documented = operation ? operation.responses[status] : undocumented;
  if (!documented) return [`the status ${status} is not documented`];
  const found = Object.entries(documented.headers).flatMap(([name, header]) => {
    const { required, schema } = resolved(header);
    const value = headers[name.toLowerCase()];
    // The document has the defaults of SVC_REQUEST_ID_HEADER and SVC_OAUTH_DELETE_ROLE.
    if (name === 'X-Request-ID') return [];
    if (value === undefined) return required ? [`the header ${name} is missing`] : [];
    if (FOLLOWED.includes(name) || (method === 'DELETE' && name === 'WWW-Authenticate')) return [];
    return faults(schema, schema.type === 'integer' ? Number(value) : value, `the header ${name}`);
  });
  return [...found, ...contentDifferences(documented.content, headers['content-type'], body, method)];
}

function contentDifferences(content, type = '', body, method) {
  if (!content || method === 'HEAD') return differs(body, '', 'the body');
  const [mediaType] = type.split(';');
  const known = mediaType === 'application/json' ? `${mediaType}; charset=utf-8` : type;
  if (!content[mediaType] || type !== known) return [`the header Content-Type is ${type}`];
  return faults(content[mediaType].schema, body, 'the body');
}

/** Why a value does not have its schema. A member that the schema does not list is a difference, too. */
function faults(given, value, place) {
  const schema = resolved(given);
  const { anyOf, type, properties, required = [], items, pattern } = schema;
  if (anyOf) return anyOf.some((one) => faults(one, value, place).length === 0) ? [] : [wrong(value, place)];
  const isWithin =
    (!('const' in schema) || value === schema.const) &&
    (!schema.enum || schema.enum.includes(value)) &&
    (!type || [type].flat().some((one) => isOfType(one, value))) &&
    (!pattern || new RegExp(pattern, 'u').test(value)) &&
    !(sizeOf(value) < (schema.minLength ?? schema.minItems ?? schema.minimum)) &&
    !(sizeOf(value) > (schema.maxLength ?? schema.maxItems ?? schema.maximum));
  if (!isWithin) return [wrong(value, place)];
  if (items) return value.flatMap((one, index) => faults(items, one, `${place}[${index}]`));
  if (!properties) return [];
  return [...new Set([...Object.keys(value), ...required])].flatMap((name) =>
    properties[name] && name in value
      ? faults(properties[name], value[name], `${place}.${name}`)
      : [wrong(value[name], `${place}.${name}`)],
  );
}

function isOfType(type, value) {
  if (type === 'integer') return Number.isInteger(value);
  return type === (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
}

/** In code points, items, or the number itself. */
const sizeOf = (value) => (typeof value === 'string' ? [...value].length : (value?.length ?? value));

function resolved(value) {
  const path = value.$ref?.split('/').slice(2);
  return path ? path.reduce((at, name) => at[name], components) : value;
}

/** No difference if the two are equal as JSON. A function accepts or refuses the value. */
export function differs(value, expected, place) {
  const isEqual = typeof expected === 'function' ? expected(value) : isDeepStrictEqual(value, expected);
  return isEqual ? [] : [`${place} is ${shown(value)}, expected ${shown(expected)}`];
}

const wrong = (value, place) => `${place} is ${shown(value)}, which is not as documented`;

function shown(value) {
  if (value === undefined) return 'absent';
  return (typeof value === 'function' ? String(value) : JSON.stringify(value)).slice(0, 300);
}
