import * as fc from 'fast-check';
import { type Field, fields, isOmittedIfNull } from '../../lib/users/fields.ts';
import type { User } from '../../lib/users/user.ts';

/** A user whose times are numbers, in milliseconds since 1970. */
export type AnyUser = Omit<User, 'created_at' | 'updated_at'> & {
  readonly created_at: number;
  readonly updated_at: number;
};

/** A time of which PostgreSQL reads the text of Date. */
const anyMoment = fc.integer({ min: Date.parse('0001-01-01'), max: Date.parse('9999-12-31') });
/** Texts with every character that JSON escapes and that PostgreSQL can store, and with characters of several bytes. */
export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 100 }).filter((text) => text.isWellFormed() && !text.includes('\0')),
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom('"', '\\', '\b', '\u001f', '\u007f', '\u2028', '\ufeff', '<', '/', 'ß', '€'),
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
