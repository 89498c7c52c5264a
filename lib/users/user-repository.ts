import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { type Preconditions, preconditionFailed } from '../preconditions.ts';
import { creatingUser } from './create-user.ts';
import { deletingUser } from './delete-user.ts';
import type { UserListQuery } from './list-query.ts';
import { noSuchUser } from './refusals.ts';
import { updatingUser } from './update-user.ts';
import type { User, UserCreate, UserUpdate } from './user.ts';
import { listingUsers, type UserPage } from './user-list.ts';
import { type UserRow, userColumns, userIn } from './user-row.ts';

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
  update(id: string, fields: UserUpdate, preconditions: Preconditions): Promise<User>;
  /** @throws {Problem} not_found_error, precondition_failed_error */
  delete(id: string, preconditions: Preconditions): Promise<void>;
};

/** The users in this database. */
export function userRepository(statements: Statements): UserRepository {
  const updateUser = updatingUser(statements);
  const deleteUser = deletingUser(statements);
  const select = prepare<{ id: string }, UserRow>(
    statements,
    'SELECT users',
    ({ id }) => sql`select ${userColumns} from users where id = ${id}`,
  );

  async function get(id: string): Promise<User> {
    const [row] = await select({ id });
    if (!row) throw noSuchUser();
    return userIn(row);
  }

  /** Nothing was written: there is no such user, or it is not of the version asked for. */
  async function refuseUntouched(id: string): Promise<never> {
    await get(id);
    throw preconditionFailed();
  }

  return {
    create: creatingUser(statements),
    list: listingUsers(statements),
    get,
    update: async (id, fields, preconditions) =>
      (await updateUser(id, fields, preconditions)) ?? refuseUntouched(id),
    async delete(id, preconditions) {
      if (!(await deleteUser(id, preconditions))) await refuseUntouched(id);
    },
  };
}
