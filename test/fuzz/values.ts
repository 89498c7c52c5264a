import fc, { type Arbitrary } from 'fast-check';
import { isValid, resolved, type Schema } from './document.ts';

/** Whether a text has as many code points as its schema allows. */
function isWithin({ minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema, given: string): boolean {
  const { length } = [...given];
  return minLength <= length && length <= maxLength;
}

/** The pattern of texts of which only the length is limited. */
const ANY_TEXT = '^[^\\u0000]*$';

/** Names of members and parameters for which the schema says less than the description. */
const BY_NAME: Readonly<Record<string, () => Arbitrary<unknown>>> = {
  email: () => address(),
  // Nobody makes up a cursor; a wait takes its time.
  cursor: () => fc.constant('now'),
  wait: () => fc.constant(0),
  created_after: () => moment(),
  created_before: () => moment(),
  'Idempotency-Key': () => key(),
};

/** Values that the schema of this name describes. */
export function inside(schema: Schema, name = ''): Arbitrary<unknown> {
  return BY_NAME[name]?.() ?? inSchema(resolved(schema));
}

function inSchema(schema: Schema): Arbitrary<unknown> {
  const { type, anyOf, items, properties, pattern } = schema;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (anyOf) return fc.oneof(...anyOf.map((one) => inside(one)));
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => inSchema({ ...schema, type: one })));
  if (type === 'null') return fc.constant(null);
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer' || type === 'number') return whole(schema);
  if (items) {
    const { minItems = 0, maxItems = 5 } = schema;
    return fc.array(inside(items), { minLength: minItems, maxLength: Math.min(maxItems, 8) });
  }
  if (properties) return inObject(schema, properties);
  return pattern === undefined || pattern === ANY_TEXT
    ? text(schema)
    : fc.stringMatching(new RegExp(pattern)).filter((given) => isWithin(schema, given));
}

/**
 * Values of JSON that the schema does not describe: anything, or in an object with one member that is none of its schema,
 * so that what is deep inside is reached.
 */
export function outside(schema: Schema, name = ''): Arbitrary<unknown> {
  const { properties, items, required = [] } = resolved(schema);
  const other = fc
    .oneof(fc.jsonValue({ maxDepth: 3 }), text({ minLength: 250, maxLength: 300 }), fc.constant(null))
    .filter((value) => !isValid(schema, value));
  if (items) return fc.oneof(other, fc.array(outside(items), { minLength: 1, maxLength: 3 }));
  if (!properties) return other;
  const spoilt = Object.entries(properties).map(([member, inner]) =>
    fc
      .tuple(inside(schema, name), outside(inner, member))
      .map(([value, bad]) => ({ ...(value as object), [member]: bad })),
  );
  const lacking = required.map((member) =>
    inside(schema, name).map((value) => {
      const { [member]: _, ...rest } = value as Record<string, unknown>;
      return rest;
    }),
  );
  return fc.oneof(other, ...spoilt, ...lacking);
}

/** The text that stands for a value in a path, a query or a header field. */
export function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value);
}

/** Texts that stand for no value of the schema. */
export function textOutside(schema: Schema, name: string): Arbitrary<string> {
  return fc
    .oneof(
      text({ maxLength: 40 }),
      fc.string(),
      fc.constantFrom('', '-1', '1e3', '0x1', 'null', ' 1', '00', '9'.repeat(30)),
    )
    .filter((value) => value.isWellFormed() && !standsForValue(schema, name, value));
}

function standsForValue(schema: Schema, name: string, value: string): boolean {
  const { type, format, items } = resolved(schema);
  if (name === 'cursor') return value === 'now';
  if (format === 'date-time') return /^\d{4}-/.test(value);
  if (type === 'integer') return /^\d+$/.test(value) && isValid(schema, Number(value));
  if (type === 'boolean') return /^(true|false)$/.test(value);
  if (items) return value.split(',').every((item) => isValid(items, item));
  return isValid(schema, value);
}

function inObject(
  { required = [] }: Schema,
  properties: Readonly<Record<string, Schema>>,
): Arbitrary<Record<string, unknown>> {
  const members = Object.entries(properties).map(([name, schema]) => [name, inside(schema, name)] as const);
  const known = fc.record(Object.fromEntries(members), { requiredKeys: [...required] as never[] });
  const unknown = fc.dictionary(
    fc.constantFrom('note', '__proto__', 'constructor', 'id'),
    fc.jsonValue({ maxDepth: 1 }),
  );
  return fc.tuple(unknown, known).map(([more, value]) => ({ ...more, ...value }));
}

function whole({ minimum = 0, maximum = 1000 }: Schema): Arbitrary<number> {
  return fc.oneof(fc.integer({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum));
}

/** Of any characters but U+0000; lengths are counted in code points. */
function text({ minLength = 0, maxLength = 20 }: Schema): Arbitrary<string> {
  const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((one) => one !== '\0');
  const lengths = fc.oneof(
    fc.integer({ min: minLength, max: Math.min(maxLength, minLength + 20) }),
    fc.constant(Math.min(maxLength, 300)),
  );
  return lengths
    .chain((length) => fc.array(character, { minLength: length, maxLength: length }))
    .map((all) => all.join(''));
}

function address(): Arbitrary<string> {
  const part = text({ minLength: 1, maxLength: 30 }).filter((one) => !/[@\s\p{Cc}]/u.test(one));
  return fc.tuple(part, part).map((parts) => parts.join('@'));
}

function moment(): Arbitrary<string> {
  const offset = fc.constantFrom('Z', 'z', '+00:00', '-11:30', '+14:00');
  const when = fc.date({ min: new Date('0002-01-01'), max: new Date('9998-01-01'), noInvalidDate: true });
  return fc.tuple(when, offset).map(([date, zone]) => date.toISOString().replace('Z', zone));
}

function key(): Arbitrary<string> {
  const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
  const bare = fc.array(visible, { minLength: 1, maxLength: 255 }).map((all) => all.join(''));
  return bare.map((one) => (/^"|,/.test(one) ? `"${one.replace(/["\\]/g, '\\$&')}"` : one));
}
