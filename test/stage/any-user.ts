import * as fc from 'fast-check';
import { type Field, fields, isOmittedIfNull, type NullableName } from '../../lib/users/fields.ts';
import type { User } from '../../lib/users/user.ts';

/** A user whose times are numbers, in milliseconds since 1970. */
export type AnyUser = Omit<User, 'created_at' | 'updated_at'> & {
  readonly created_at: number;
  readonly updated_at: number;
};

/** The range of Date, in milliseconds since 1970. */
const LAST_TIMESTAMP = 8.64e15;

/** A time in the range of Date, usually in these years. */
export const anyMoment = fc.oneof(
  fc.integer({ min: -LAST_TIMESTAMP, max: LAST_TIMESTAMP }),
  fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
);
/** Texts with every character that JSON escapes, with characters of several bytes, and with lone surrogates. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom(
      '"',
      '\\',
      '\u0000',
      '\u001f',
      '\u007f',
      '\u2028',
      '\u2029',
      '\ud83d',
      '\ude00',
      '<',
      '/',
      'ß',
    ),
  }),
);

const ANY = { uuid: fc.uuid(), text: anyText, boolean: fc.boolean(), timestamptz: anyMoment };

const anyValue = ({ sqlType, onCreate }: Field) =>
  onCreate === 'optional' ? fc.option<unknown>(ANY[sqlType]) : ANY[sqlType];

/** Any user. */
export const anyUser = fc
  .record({
    ...Object.fromEntries(fields.map((field) => [field.name, anyValue(field)])),
    version: fc.constant('1'),
    isNew: fc.boolean(),
  })
  .map((record) => {
    const { isNew, ...user } = record as unknown as AnyUser & { isNew: boolean };
    return (isNew ? { ...user, updated_at: user.created_at } : user) as AnyUser;
  });

/** The fields that are null if they are not given. */
export const nullFields = Object.fromEntries(
  fields.flatMap(({ name, onCreate }) => (onCreate === 'optional' ? [[name, null]] : [])),
) as Pick<User, NullableName>;

/** A user as in a response: times in UTC with milliseconds. */
export function representation(user: AnyUser): Record<string, unknown> {
  const shown = fields.filter((field) => user[field.name] !== null || !isOmittedIfNull(field));
  return Object.fromEntries(
    shown.map(({ name, sqlType }) => {
      const value = user[name];
      return [name, sqlType === 'timestamptz' ? new Date(value as number).toISOString() : value];
    }),
  );
}
