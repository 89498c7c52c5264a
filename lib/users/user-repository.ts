import { type Kysely, sql } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import { violatesUnique } from '../database/faults.ts';
import type { Tables } from '../database/schema.ts';
import { type Preconditions, preconditionFailed } from '../preconditions.ts';
import type { UserListQuery } from './list-query.ts';
import { emailTaken, noSuchUser } from './refusals.ts';
import { changedFields, type User, type UserCreate, type UserUpdate } from './user.ts';
import { userColumns } from './user-columns.ts';
import { readPage, type UserPage } from './user-list.ts';
import { versionsFor } from './versions.ts';

/**
 * The users in PostgreSQL. Each method is one statement, so that racing writers are decided by the
 * unique index and the row itself, never by what was read before.
 */
export type UserRepository = {
  /** @throws {Problem} conflict_error when the email is taken */
  create(user: UserCreate): Promise<User>;
  list(query: UserListQuery): Promise<UserPage>;
  /** @throws {Problem} not_found_error */
  get(id: string): Promise<User>;
  /** @throws {Problem} not_found_error, precondition_failed_error, conflict_error when the email is taken */
  update(id: string, changes: UserUpdate, preconditions: Preconditions): Promise<User>;
  /** @throws {Problem} not_found_error, precondition_failed_error */
  delete(id: string, preconditions: Preconditions): Promise<void>;
};

/** The users in `db`. */
export function userRepository(db: Kysely<Tables>): UserRepository {
  return {
    async create({ email, full_name }) {
      return db
        .insertInto('users')
        .values({ id: uuidv7(), email, full_name })
        .returning(userColumns)
        .executeTakeFirstOrThrow()
        .catch(refuseTakenEmail);
    },

    list: (query) => readPage(db, query),

    async get(id) {
      const user = await db.selectFrom('users').select(userColumns).where('id', '=', id).executeTakeFirst();
      if (!user) throw noSuchUser();
      return user;
    },

    async update(id, changes, preconditions) {
      const user = await db
        .updateTable('users')
        .set({ ...changedFields(changes), updated_at: laterThanBefore, version: sql`version + 1` })
        .where('id', '=', id)
        .where(isOfVersions(preconditions))
        .returning(userColumns)
        .executeTakeFirst()
        .catch(refuseTakenEmail);
      return user ?? refuseUntouched(id);
    },

    async delete(id, preconditions) {
      const { numDeletedRows } = await db
        .deleteFrom('users')
        .where('id', '=', id)
        .where(isOfVersions(preconditions))
        .executeTakeFirstOrThrow();
      if (numDeletedRows === 0n) await refuseUntouched(id);
    },
  };

  /** Nothing was written: there is no such user, or it is not of the version asked for. */
  async function refuseUntouched(id: string): Promise<never> {
    const user = await db.selectFrom('users').select('id').where('id', '=', id).executeTakeFirst();
    throw user ? preconditionFailed() : noSuchUser();
  }
}

/** One array, empty where no version matches: `in ()` would be no SQL. */
function isOfVersions(preconditions: Preconditions) {
  const { among, except } = versionsFor(preconditions);
  return sql<boolean>`(${among}::bigint[] is null or version = any(${among}::bigint[]))
    and (${except}::bigint[] is null or version <> all(${except}::bigint[]))`;
}

/** Also when the clock stands still, or has been set back. */
const laterThanBefore = sql<Date>`greatest(clock_timestamp(), updated_at + interval '1 millisecond')`;

function refuseTakenEmail(fault: unknown): never {
  throw violatesUnique(fault, 'users_email_key') ? emailTaken() : fault;
}
