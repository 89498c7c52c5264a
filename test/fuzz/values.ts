import type { Arbitrary } from 'fast-check';
import { fc } from '../stage/fast-check.ts';
import { isValid, resolved, type Schema } from './document.ts';

/** Texts of any characters but U+0000 and lone surrogates, also at the limit of their length, in code points. */
const text = ({ minLength = 0, maxLength = 20 }: Schema) => {
  const lengths = { minLength, maxLength: Math.min(maxLength, minLength + 20) };
  const short = fc.string({ unit: 'binary', ...lengths });
  const long = short
    .map((one) => one + 'é🌍'.repeat(128))
    .map((one) => [...one].slice(0, maxLength).join(''));
  return fc
    .oneof({ weight: 4, arbitrary: short }, { weight: 1, arbitrary: long })
    .map((one) => one.replaceAll('\0', ''));
};

const part = text({ minLength: 1, maxLength: 30 }).filter((one) => !/^$|[@\s\p{Cc}]/u.test(one));
const instant = fc
  .tuple(
    fc.date({ min: new Date('0002-01-01'), max: new Date('9998-01-01'), noInvalidDate: true }),
    fc.constantFrom('Z', 'z', '+00:00', '-11:30', '+14:00'),
  )
  .map(([date, zone]) => date.toISOString().replace('Z', zone));

/** Values of names for which the schema says less than the description. Only a link makes a cursor; a wait takes its time. */
const BY_NAME: Readonly<Record<string, Arbitrary<unknown>>> = {
  email: fc.tuple(part, part).map((parts) => parts.join('@')),
  cursor: fc.constant('now'),
  wait: fc.constant(0),
  created_after: instant,
  created_before: instant,
};

export function inside(schema: Schema, name = ''): Arbitrary<unknown> {
  const known = resolved(schema);
  return BY_NAME[name] ?? inSchema(known).filter((value) => isValid(known, value));
}

function inSchema(schema: Schema): Arbitrary<unknown> {
  const { type, anyOf, items, properties, pattern, minimum = 0, maximum = 1000 } = schema;
  const ofType: Readonly<Record<string, () => Arbitrary<unknown>>> = {
    null: () => fc.constant(null),
    boolean: () => fc.boolean(),
    integer: () => fc.oneof(fc.integer({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum)),
    array: () => fc.array(inside(items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 8 }),
    object: () => record(schema, properties ?? {}),
    string: () =>
      pattern === undefined || isValid(schema, 'é🌍'.repeat(5))
        ? text(schema)
        : fc.stringMatching(new RegExp(pattern)),
  };
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (anyOf) return fc.oneof(...anyOf.map((one) => inside(one)));
  return fc.oneof(...[type ?? []].flat().map((one) => ofType[one]?.() ?? fc.constant(null)));
}

function record({ required = [] }: Schema, properties: NonNullable<Schema['properties']>): Arbitrary<object> {
  const members = Object.entries(properties).map(([name, schema]) => [name, inside(schema, name)] as const);
  const known = fc.record(Object.fromEntries(members), { requiredKeys: [...required] as never[] });
  const names = fc.constantFrom('note', '__proto__', 'constructor', 'id');
  const unknown = fc.dictionary(names, fc.jsonValue({ maxDepth: 1 }));
  return fc.tuple(unknown, known).map(([more, value]) => ({ ...more, ...value }));
}

/** Any JSON, or a value of the schema in which one member or item, however deep, is any JSON or absent. */
export function anyJson(schema: Schema, name = ''): Arbitrary<unknown> {
  const { properties, items } = resolved(schema);
  const any = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text({ minLength: 250, maxLength: 300 }));
  const spoilt = Object.entries(properties ?? {}).map(([member, inner]) =>
    fc
      .tuple(inside(schema, name), fc.oneof(anyJson(inner, member), fc.constant(undefined)))
      .map(([value, other]) => ({ ...(value as object), [member]: other })),
  );
  const list = items ? [fc.array(anyJson(items), { minLength: 1, maxLength: 3 })] : [];
  return fc.oneof(any, ...spoilt, ...list);
}

/** The text that stands for a value in a path, a query or a header field. */
export const textOf = (value: unknown) => (Array.isArray(value) ? value.join(',') : String(value));

/** Any text, among them such that a careless parser takes for a value. */
export const anyText = fc
  .oneof(text({ maxLength: 40 }), fc.constantFrom('', '-1', '1e3', '0x1', 'null', ' 1', '00', '9'.repeat(30)))
  .filter((one) => one.isWellFormed());

export function standsForValue(schema: Schema, value: string): boolean {
  const { type, items, format, pattern = '' } = resolved(schema);
  // The validator knows only times in the form of responses.
  if (format === 'date-time') return new RegExp(pattern).test(value);
  if (type === 'integer') return /^\d+$/.test(value) && isValid(schema, Number(value));
  if (type === 'boolean') return /^(true|false)$/.test(value);
  if (items) return value.split(',').every((item) => isValid(items, item)) && value.split(',').length <= 100;
  return isValid(schema, value);
}
