import { type RawBuilder, sql } from 'kysely';
import type { Fingerprint } from '../idempotency/fingerprint.ts';
import { claimed } from '../idempotency/key-table.ts';
import { clock, eachGiven, isInSchema, type Statements } from '../postgres/index.ts';
import { AUTHOR_TYPES, type Author, recorded } from './change-recording.ts';
import { foldedEmail } from './email.ts';
import { createdFields, fields, sqlTypesOf, type UpdatedName, updatedFields } from './fields.ts';
import type { User, UserCreate } from './user.ts';
import { isOfGivenVersions, VERSION_TYPES, type VersionTexts } from './write-preconditions.ts';

export type UserInsert = UserCreate & Author & { readonly id: string };

/** The fields that an update sets: their values, and their bits in `sets`. The values of all other fields are ignored. */
export type ValuesToSet = { readonly sets: number } & {
  readonly [Name in UpdatedName]: User[Name] | null;
};

type ConditionalWrite = Author & VersionTexts & { readonly id: string };

/** Prepares the statements about one user. Each carries out the requests of several callers, except for `insertOnce`. */
export function userStatements(statements: Statements) {
  const { engine } = statements;
  return {
    read: statements.batchedRead<User>(
      'SELECT users',
      'uuid',
      (ids) => sql`select ${userColumns} from users where id = any(${ids})`,
    ),

    /**
     * The order of the addresses prevents two statements from waiting for each other. If two items have one address, the
     * first one wins. No row means that the email is taken. Any other conflict is an error with the name of its index.
     */
    insert: statements.batchedWrite<UserInsert, User>(
      'INSERT users',
      { ...INSERTED_TYPES, ...AUTHOR_TYPES },
      (given) =>
        writeReturning(
          [given],
          insertUsers(
            'given',
            sql`given`,
            sql`order by ${foldedEmail(sql.ref('given.email'))}
            on conflict (${foldedEmail(sql.ref('email'))}) do nothing`,
          ),
          recorded(engine, 'created'),
        ),
    ),

    /** Claims a key, too. With the statement of a batch, this took 40 % longer in PostgreSQL. */
    insertOnce: statements.ownSessionWrite<UserInsert & Fingerprint, User>(
      'INSERT users',
      (given) =>
        writeReturning(
          [claimed(given, sql`select array[${given.id}::uuid]`)],
          insertUsers('item', sql`claimed, (values (${insertedValues(given)})) as item (${insertedNames})`),
          recorded(engine, 'created', given),
          { isKeyed: true },
        ),
      { limitsLockWaits: true },
    ),

    /**
     * Serves every combination of fields: it sets an absent field to the row's current value. Two writers of different
     * fields therefore do not undo each other's changes.
     */
    update: statements.batchedWrite<ConditionalWrite & ValuesToSet, User>(
      'UPDATE users',
      { id: 'uuid', ...sqlTypesOf(updatedFields), sets: 'smallint', ...VERSION_TYPES, ...AUTHOR_TYPES },
      (given) =>
        writeReturning(
          [given],
          sql`update users set ${assignments}, updated_at = ${laterThanBefore}, version = version + 1, changed = ${changed}
          from ${eachGiven}, clock where users.id = given.id and ${isOfGivenVersions}`,
          recorded(engine, 'updated'),
          { andReturns: sql`, given.actor, given.request_id` },
        ),
    ),

    /** A deletion has the version after the last one. */
    delete: statements.batchedWrite<ConditionalWrite, { id: string }>(
      'DELETE users',
      { id: 'uuid', ...VERSION_TYPES, ...AUTHOR_TYPES },
      (given) => sql`with ${given}, ${clock}, written as (
        delete from users using ${eachGiven}, clock where users.id = given.id and ${isOfGivenVersions}
        returning users.id, version + 1 as version, 0 as changed, ${laterThanBefore} as moment, given.actor, given.request_id
      ), ${recorded(engine, 'deleted')}
      select id from written`,
    ),
  };
}

/**
 * Strictly later than before, also if the clock stands still or was set back. Without a time zone, the sum depends on no
 * setting. Citus evaluates no expression that does in an update.
 */
const laterThanBefore = sql`greatest(clock.now, (users.updated_at at time zone 'UTC' + interval '1 millisecond') at time zone 'UTC')`;

const columns = updatedFields.map(({ name, changeBit }) => {
  const [bit, old, given] = [sql.lit(changeBit), sql.ref(`users.${name}`), sql.ref(`given.${name}`)];
  const value = sql`case when (given.sets & ${bit}) <> 0 then ${given} else ${old} end`;
  return {
    assignment: sql`${sql.ref(name)} = ${value}`,
    // On the right of `=` in `set`, columns have their values from before the update.
    changedBit: sql`${bit} * (${old} is distinct from ${value})::int`,
  };
});
const assignments = sql.join(columns.map(({ assignment }) => assignment));
const changed = sql.join(
  columns.map(({ changedBit }) => changedBit),
  sql` + `,
);

/**
 * The columns of a user. A time is in milliseconds since 1970: the text of a timestamp depends on DateStyle and TimeZone,
 * which roles, databases and poolers set, and a number does not. `date_part` returns a float8, which holds the
 * milliseconds of ten thousand years and costs half of the exact `extract`.
 */
export const userColumns = selectColumns('users');

function selectColumns(table: string) {
  return sql.join([
    ...fields.map(({ name, sqlType }) => {
      const column = sql.ref(`${table}.${name}`);
      if (sqlType !== 'timestamptz') return column;
      return sql`(date_part('epoch', ${column}) * 1000)::bigint as ${sql.ref(name)}`;
    }),
    sql.ref(`${table}.version`),
  ]);
}

const INSERTED_TYPES = { id: 'uuid', ...sqlTypesOf(createdFields) } as const;

type InsertedName = keyof typeof INSERTED_TYPES;

const entries = Object.entries(INSERTED_TYPES) as [InsertedName, string][];

export const insertedNames = sql.join(entries.map(([name]) => sql.ref(name)));

/**
 * Inserts a user for each row of `rows` in `from`, whose columns have the names of the fields. Citus sends no insert that
 * evaluates the default of a column to a worker.
 */
export function insertUsers(rows: string, from: RawBuilder<unknown>, rest = sql``): RawBuilder<unknown> {
  const values = sql.join(entries.map(([name]) => sql.ref(`${rows}.${name}`)));
  return sql`insert into users (${insertedNames}, is_active, created_at, updated_at, version, changed)
    select ${values}, true, clock.now, clock.now, 1, 0 from clock, ${from} where ${isInSchema} ${rest}`;
}

/** The values of these columns as parameters of their types. With the suffix `[]`, each is a list. */
export function insertedValues(
  given: Readonly<Record<InsertedName, unknown>>,
  suffix: '' | '[]' = '',
): RawBuilder<unknown> {
  return sql.join(entries.map(([name, type]) => sql`${given[name]}::${sql.raw(type + suffix)}`));
}

/**
 * The statement that writes users from the common table expressions `before`, records their changes, and returns the users
 * as written. If it is keyed, `before` contains `claimed`: no row means that the key was known, and one row without values
 * that the key is claimed and no user is written.
 */
export function writeReturning(
  before: readonly RawBuilder<unknown>[],
  write: RawBuilder<unknown>,
  record: RawBuilder<unknown>,
  { isKeyed = false, andReturns = sql`` } = {},
): RawBuilder<User> {
  const written = sql`written as (
    ${write} returning users.*, users.updated_at as moment${andReturns}
  )`;
  return sql`with ${sql.join([clock, ...before, written, record])}
    select ${selectColumns('written')}
    from ${isKeyed ? sql`claimed left join written on true` : sql`written`} order by written.id`;
}
