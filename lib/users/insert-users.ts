import { type RawBuilder, sql } from 'kysely';
import { createdFields, sqlTypesOf } from './fields.ts';

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
