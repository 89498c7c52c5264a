import { type RawBuilder, sql } from 'kysely';
import { createdFields, type Field, type FieldName, fields, sqlTypesOf } from './fields.ts';
import type { User } from './user.ts';

/** The names of a user's columns. */
const userColumnNames = sql.join([...fields.map(({ name }) => sql.ref(name)), sql.ref('version')]);

/** The columns of a user. */
export const userColumns = sql.join([...fields.map(columnOf), sql.ref('users.version')]);

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

/** The columns that an insert sets, with their SQL types. The others have defaults. */
export const INSERTED_TYPES = { id: 'uuid', ...sqlTypesOf(createdFields) } as const;

type InsertedName = keyof typeof INSERTED_TYPES;

const entries = Object.entries(INSERTED_TYPES) as [InsertedName, string][];

/** The names of these columns. */
export const insertedNames = sql.join(entries.map(([name]) => sql.ref(name)));

/** Inserts a user for each row of `rows`, whose columns have the names of the fields. */
export function insertUsers(rows: string, from: RawBuilder<unknown>): RawBuilder<unknown> {
  const values = sql.join(entries.map(([name]) => sql.ref(`${rows}.${name}`)));
  return sql`insert into users (${insertedNames}) select ${values} from ${from}`;
}

/** The values of these columns as parameters of their types. With the suffix `[]`, each is a list. */
export function insertedValues(
  given: Readonly<Record<InsertedName, unknown>>,
  suffix: '' | '[]' = '',
): RawBuilder<unknown> {
  return sql.join(entries.map(([name, type]) => sql`${given[name]}::${sql.raw(type + suffix)}`));
}

type CteParts = {
  /** Common table expressions that `write` selects from. */
  readonly before?: readonly RawBuilder<unknown>[];
  /** The common table expression that records a change for each row of `written`. */
  readonly record: RawBuilder<unknown>;
  /** Whether `before` contains `claimed`. If so, no row means that the key was known. */
  readonly isKeyed?: boolean;
};

/**
 * The statement that writes users, records their changes, and returns the users as written. If it is keyed and writes no
 * user, it returns one row without values, which says that the key is claimed.
 */
export function writeReturning(
  write: RawBuilder<unknown>,
  { before = [], record, isKeyed = false }: CteParts,
): RawBuilder<User> {
  const written = sql`written as (
    ${write} returning ${userColumns}, users.changed, users.updated_at as moment
  )`;
  return sql`with ${sql.join([...before, written, record])}
    select ${userColumnNames}
    from ${isKeyed ? sql`claimed left join written on true` : sql`written`} order by id`;
}
