import { sql } from 'kysely';
import type { Author } from '../changes/recording.ts';
import { type Preconditions, preconditionFailed } from '../http/preconditions.ts';
import type { Outcome } from '../idempotency/carry-out-once.ts';
import { fingerprint } from '../idempotency/fingerprint.ts';
import { creatingBatch } from './batch/create-batch.ts';
import { type UserBatch, valuesOf } from './batch/user-batch.ts';
import { creatingUser } from './create-user.ts';
import { deletingUser } from './delete-user.ts';
import { keyedValues } from './keyed-values.ts';
import type { UserListQuery } from './list-query.ts';
import { noSuchUser } from './refusals.ts';
import type { ReplayedUser } from './replayed-users.ts';
import { updatingUser } from './update-user.ts';
import type { User, UserCreate, UserUpdate } from './user.ts';
import { listingUsers, type UserPage } from './user-list.ts';
import { type UserRow, userColumns, userIn } from './user-row.ts';
import type { WriteContext } from './write-context.ts';

/**
 * The users in PostgreSQL. Each method is one statement. The unique index and the row itself decide between racing
 * writers, never an earlier read. A second statement only finds the reason why nothing was written.
 */
export type UserRepository = {
  /**
   * With a key, a create is carried out once, however often it is sent.
   *
   * @throws {Problem} conflict_error if the email is taken; for a known key idempotency_key_reused_error,
   * idempotency_key_in_use_error and gone_error
   */
  create(user: UserCreate, author: Author, key?: string): Promise<Outcome<User>>;
  /**
   * Resolves with the result of each item, in their order.
   *
   * @throws {Problem} as create does; for an atomic batch also validation_error if it has an email twice
   */
  createBatch(batch: UserBatch, author: Author, key?: string): Promise<Outcome<readonly ReplayedUser[]>>;
  list(query: UserListQuery): Promise<UserPage>;
  /** @throws {Problem} not_found_error */
  get(id: string): Promise<User>;
  /** @throws {Problem} not_found_error, precondition_failed_error, conflict_error if the email is taken */
  update(id: string, fields: UserUpdate, preconditions: Preconditions, author: Author): Promise<User>;
  /** @throws {Problem} not_found_error, precondition_failed_error */
  delete(id: string, preconditions: Preconditions, author: Author): Promise<void>;
};

/** Creates the repository over these statements. */
export function userRepository(writing: WriteContext): UserRepository {
  const { createUser, createUserOnce } = creatingUser(writing);
  const { createBatch, createBatchOnce } = creatingBatch(writing);
  const updateUser = updatingUser(writing);
  const deleteUser = deletingUser(writing);
  const select = writing.statements.batchedRead<UserRow>(
    'SELECT users',
    (ids) => sql`select ${userColumns} from users where id = any(${ids})`,
  );

  async function get(id: string): Promise<User> {
    const row = await select(id);
    if (!row) throw noSuchUser();
    return userIn(row);
  }

  /** Nothing was written: the user does not exist, or has another version than the preconditions allow. */
  async function refuseUntouched(id: string): Promise<never> {
    await get(id);
    throw preconditionFailed();
  }

  return {
    async create(user, author, key) {
      if (key === undefined) return { created: await createUser(user, author), isReplay: false };
      const request = { operation: 'createUser', subject: author.actor, key };
      return createUserOnce(user, author, fingerprint(request, keyedValues(user)));
    },
    async createBatch(batch, author, key) {
      if (key === undefined) return { created: await createBatch(batch, author), isReplay: false };
      const request = { operation: 'createUsers', subject: author.actor, key };
      return createBatchOnce(batch, author, fingerprint(request, valuesOf(batch)));
    },
    list: listingUsers(writing.statements),
    get,
    update: async (id, fields, preconditions, author) =>
      (await updateUser(id, fields, preconditions, author)) ?? refuseUntouched(id),
    async delete(id, preconditions, author) {
      if (!(await deleteUser(id, preconditions, author))) await refuseUntouched(id);
    },
  };
}
