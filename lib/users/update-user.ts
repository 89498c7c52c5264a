import { sql } from 'kysely';
import { type Author, FIELD_BITS, recorded } from '../changes/recording.ts';
import { prepare } from '../database/prepared.ts';
import type { Preconditions } from '../preconditions.ts';
import { refuseTakenEmail } from './create-user.ts';
import { fieldsToSet, type User, type UserUpdate } from './user.ts';
import { type UserRow, userIn } from './user-row.ts';
import { isOfVersions, type Versions, versionsFor } from './write-preconditions.ts';
import type { Writing } from './writing.ts';
import { type WrittenRow, writtenUsers } from './written-users.ts';

/** Null leaves `email` and `is_active`. */
type Given = Author & Versions & ReturnType<typeof fieldsToSet> & { readonly id: string };

/** Also when the clock stands still, or has been set back. */
const laterThanBefore = sql`greatest(clock_timestamp(), updated_at + interval '1 millisecond')`;

/**
 * Changes the given fields of a user. One statement for all of them: what is not given is set to what the row has at
 * that moment, so that of two writers of different fields none undoes the other. Resolves with nothing where there is
 * no such user, or its version is another.
 */
export function updatingUser({ writes, recordsChanges }: Writing) {
  const update = prepare<Given, WrittenRow>(
    writes,
    'UPDATE users',
    (given) => {
      const email = sql`coalesce(${given.email}::text, email)`;
      const full_name = sql`case when ${given.sets_full_name}::boolean then ${given.full_name}::text else full_name end`;
      const is_active = sql`coalesce(${given.is_active}::boolean, is_active)`;
      // Right of `=` stands the row as it was.
      const changed = sql`, changed = ${sql.lit(FIELD_BITS.email)} * (email is distinct from ${email})::int
      + ${sql.lit(FIELD_BITS.full_name)} * (full_name is distinct from ${full_name})::int
      + ${sql.lit(FIELD_BITS.is_active)} * (is_active is distinct from ${is_active})::int`;
      return writtenUsers(
        sql`update users set email = ${email}, full_name = ${full_name}, is_active = ${is_active},
        updated_at = ${laterThanBefore}, version = version + 1${recordsChanges ? changed : sql``}
      where id = ${given.id} and ${isOfVersions(given)}`,
        { record: recordsChanges ? recorded('updated', given) : undefined },
      );
    },
    'write',
  );

  return async (
    id: string,
    fields: UserUpdate,
    preconditions: Preconditions,
    author: Author,
  ): Promise<User | undefined> => {
    const given = { id, ...fieldsToSet(fields), ...versionsFor(preconditions), ...author };
    const [row] = await update(given).catch(refuseTakenEmail);
    return row && userIn(row as UserRow);
  };
}
