import { sql } from 'kysely';
import type { Author } from '../changes/recording.ts';
import { type Preconditions, preconditionFailed } from '../http/preconditions.ts';
import { carryingOutOnce } from '../idempotency/carry-out-once.ts';
import type { Statements } from '../postgres/index.ts';
import { creatingBatch } from './batch/create-batch.ts';
import { creatingUser } from './create-user.ts';
import { deletingUser } from './delete-user.ts';
import { readingKeyedCreates } from './keyed-creates.ts';
import { noSuchUser } from './refusals.ts';
import { updatingUser } from './update-user.ts';
import type { User, UserUpdate } from './user.ts';
import { listingUsers } from './user-list.ts';
import { type UserRow, userColumns, userIn } from './user-row.ts';

/**
 * The users in PostgreSQL, over these statements. Each method is one statement. The unique index and the row itself decide
 * between racing writers, never an earlier read. A second statement only finds the reason why nothing was written.
 * `onReplay` is called for each replayed request.
 */
export function userRepository(statements: Statements, onReplay: () => void) {
  const carryOutOnce = carryingOutOnce(statements, { read: readingKeyedCreates(statements), onReplay });
  const updateUser = updatingUser(statements);
  const deleteUser = deletingUser(statements);
  const select = statements.batchedRead<UserRow>(
    'SELECT users',
    (ids) => sql`select ${userColumns} from users where id = any(${ids})`,
  );

  /** @throws {Problem} not_found_error */
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
    /**
     * @throws {Problem} conflict_error if the email is taken; for a known key idempotency_key_reused_error,
     * idempotency_key_in_use_error and gone_error
     */
    create: creatingUser(statements, carryOutOnce),
    /** @throws {Problem} as create does; for an atomic batch also validation_error if it has an email twice */
    createBatch: creatingBatch(statements, carryOutOnce),
    list: listingUsers(statements),
    get,
    /** @throws {Problem} not_found_error, precondition_failed_error, conflict_error if the email is taken */
    update: async (
      id: string,
      fields: UserUpdate,
      preconditions: Preconditions,
      author: Author,
    ): Promise<User> => (await updateUser(id, fields, preconditions, author)) ?? refuseUntouched(id),
    /** @throws {Problem} not_found_error, precondition_failed_error */
    async delete(id: string, preconditions: Preconditions, author: Author): Promise<void> {
      if (!(await deleteUser(id, preconditions, author))) await refuseUntouched(id);
    },
  };
}
