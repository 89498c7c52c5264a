import { sql } from 'kysely';
import { AUTHOR_TYPES, type Author, recorded } from '../changes/recording.ts';
import type { Fingerprint } from '../idempotency/fingerprint.ts';
import { claimed } from '../idempotency/key-table.ts';
import type { Statements } from '../postgres/index.ts';
import { sqlTypesOf, type UpdatedName, updatedFields } from './fields.ts';
import type { User, UserCreate } from './user.ts';
import {
  INSERTED_TYPES,
  insertedNames,
  insertedValues,
  insertUsers,
  userColumns,
  writeReturning,
} from './user-row.ts';
import { isOfGivenVersions, VERSION_TYPES, type VersionTexts } from './write-preconditions.ts';

/** The parameters of an insert. */
export type UserInsert = UserCreate & Author & { readonly id: string };

/** The fields that an update sets: their values, and their bits in `sets`. The values of all other fields are ignored. */
export type ValuesToSet = { readonly sets: number } & {
  readonly [Name in UpdatedName]: User[Name] | null;
};

type UserUpdateParameters = Author & VersionTexts & ValuesToSet & { readonly id: string };
type UserDelete = Author & VersionTexts & { readonly id: string };

/** The statements about one user. */
export type UserStatements = ReturnType<typeof userStatements>;

/** Prepares the statements about one user. Each carries out the requests of several callers, except for `insertOnce`. */
export function userStatements(statements: Statements) {
  return {
    read: statements.batchedRead<User>(
      'SELECT users',
      'uuid',
      (ids) => sql`select ${userColumns} from users where id = any(${ids})`,
    ),

    /**
     * The order of the addresses prevents two statements from waiting for each other. It folds by the collation of the
     * database; where that of the column differs, a deadlock is possible, and is retried. If two items have one address,
     * the first one wins. `on conflict` names no index, because CockroachDB accepts no expression there, and generated
     * ids do not collide.
     */
    insert: statements.batchedWrite<UserInsert, User>(
      'INSERT users',
      { ...INSERTED_TYPES, ...AUTHOR_TYPES },
      (given) =>
        writeReturning(
          insertUsers('given', sql`given order by lower(upper(given.email)) on conflict do nothing`),
          { before: [given], record: recorded('created') },
        ),
    ),

    /** Claims a key, too. With the statement of a batch, this took 40 % longer in PostgreSQL. */
    insertOnce: statements.single<UserInsert & Fingerprint, User>('INSERT users', (given) =>
      writeReturning(
        insertUsers('item', sql`claimed, (values (${insertedValues(given)})) as item (${insertedNames})`),
        {
          before: [claimed(given, sql`array[${given.id}::uuid]`, statements)],
          record: recorded('created', given),
          isKeyed: true,
        },
      ),
    ),

    /**
     * Serves every combination of fields: it sets an absent field to the row's current value. Two writers of different
     * fields therefore do not undo each other's changes.
     */
    update: statements.batchedWrite<UserUpdateParameters, User>(
      'UPDATE users',
      { id: 'uuid', ...sqlTypesOf(updatedFields), sets: 'smallint', ...VERSION_TYPES, ...AUTHOR_TYPES },
      (given) =>
        writeReturning(
          sql`update users set ${assignments}, updated_at = ${laterThanBefore}, version = version + 1, changed = ${changed}
          from given where users.id = given.id and ${isOfGivenVersions}`,
          { before: [given], record: recorded('updated') },
        ),
    ),

    /** A deletion has the version after the last one. */
    delete: statements.batchedWrite<UserDelete, { id: string }>(
      'DELETE users',
      { id: 'uuid', ...VERSION_TYPES, ...AUTHOR_TYPES },
      (given) => sql`with ${given}, written as (
        delete from users using given where users.id = given.id and ${isOfGivenVersions}
        returning users.id, version + 1 as version, 0 as changed, clock_timestamp() as moment
      ), ${recorded('deleted')}
      select id from written`,
    ),
  };
}

/** Strictly later than before, also if the clock stands still or was set back. */
const laterThanBefore = sql`greatest(clock_timestamp(), users.updated_at + interval '1 millisecond')`;

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
