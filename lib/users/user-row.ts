import { sql } from 'kysely';
import { type Field, type FieldName, fields } from './fields.ts';
import type { StoredUser, User } from './user.ts';

/** A user as PostgreSQL returns it: numbers of type bigint arrive as texts. */
export type UserRow = StoredUser<{ uuid: string; text: string; boolean: boolean; timestamptz: string }>;

/** The names of a user's columns. */
export const userColumnNames = sql.join([...fields.map(({ name }) => sql.ref(name)), sql.ref('version')]);

/** The columns of a user. */
export const userColumns = sql.join([...fields.map(columnOf), sql.ref('users.version')]);

const times = fields.filter(({ sqlType }) => sqlType === 'timestamptz').map(({ name }) => name);

/** The user in a row. */
export function userIn(row: UserRow): User {
  const user: Record<string, unknown> = { ...row };
  for (let index = 0; index < times.length; index += 1) {
    const name = times[index] as FieldName;
    user[name] = Number(row[name]);
  }
  return user as User;
}

/**
 * A time is in milliseconds since 1970: the text of a timestamp depends on DateStyle and TimeZone, which roles,
 * databases and poolers set, and a number does not. `date_part` returns a float8, which holds the milliseconds of ten
 * thousand years and costs half of the exact `extract`.
 */
function columnOf({ name, sqlType }: Field & { readonly name: FieldName }) {
  const column = sql.ref(`users.${name}`);
  if (sqlType !== 'timestamptz') return column;
  return sql`(date_part('epoch', ${column}) * 1000)::bigint as ${sql.ref(name)}`;
}
