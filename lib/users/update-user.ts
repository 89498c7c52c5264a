import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import type { Preconditions } from '../preconditions.ts';
import { refuseTakenEmail } from './create-user.ts';
import { fieldsToSet, type User, type UserUpdate } from './user.ts';
import { type UserRow, userColumns, userIn } from './user-row.ts';
import { isOfVersions, type Versions, versionsFor } from './versions.ts';

/** Null leaves `email` and `is_active`. */
type Given = Versions & ReturnType<typeof fieldsToSet> & { readonly id: string };

/** Also when the clock stands still, or has been set back. */
const laterThanBefore = sql`greatest(clock_timestamp(), updated_at + interval '1 millisecond')`;

/**
 * Changes the given fields of a user. One statement for all of them: what is not given is set to what the row has at
 * that moment, so that of two writers of different fields none undoes the other. Resolves with nothing where there is
 * no such user, or its version is another.
 */
export function updatingUser(statements: Statements) {
  const update = prepare<Given, UserRow>(
    statements,
    'UPDATE users',
    (given) => sql`
      update users set email = coalesce(${given.email}::text, email),
        full_name = case when ${given.sets_full_name}::boolean then ${given.full_name}::text else full_name end,
        is_active = coalesce(${given.is_active}::boolean, is_active),
        updated_at = ${laterThanBefore}, version = version + 1
      where id = ${given.id} and ${isOfVersions(given)}
      returning ${userColumns}`,
  );

  return async (id: string, fields: UserUpdate, preconditions: Preconditions): Promise<User | undefined> => {
    const given = { id, ...fieldsToSet(fields), ...versionsFor(preconditions) };
    const [row] = await update(given).catch(refuseTakenEmail);
    return row && userIn(row);
  };
}
