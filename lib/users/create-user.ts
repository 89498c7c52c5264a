import { sql } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import { violatesUnique } from '../database/faults.ts';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { emailTaken } from './refusals.ts';
import type { User, UserCreate } from './user.ts';
import { type UserRow, userColumns, userIn } from './user-row.ts';

/** Stores one user. */
export function creatingUser(statements: Statements) {
  const insert = prepare<UserCreate & { readonly id: string }, UserRow>(
    statements,
    'INSERT users',
    ({ id, email, full_name }) =>
      sql`insert into users (id, email, full_name) values (${id}, ${email}, ${full_name}) returning ${userColumns}`,
  );

  return async (user: UserCreate): Promise<User> => {
    const [row] = await insert({ ...user, id: uuidv7() }).catch(refuseTakenEmail);
    return userIn(row as UserRow);
  };
}

/** The unique index decides on every create and update, so that two racing writers cannot both win. */
export function refuseTakenEmail(fault: unknown): never {
  throw violatesUnique(fault, 'users_email_key') ? emailTaken() : fault;
}
