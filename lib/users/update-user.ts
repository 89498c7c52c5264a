import { sql } from 'kysely';
import { AUTHOR_TYPES, type Author, FIELD_BITS, recordedByEach } from '../changes/recording.ts';
import type { Preconditions } from '../http/preconditions.ts';
import { refuseTakenEmail } from './create-user.ts';
import { fieldsToSet, type User, type UserUpdate } from './user.ts';
import { type UserRow, userIn } from './user-row.ts';
import type { WriteContext } from './write-context.ts';
import { isOfGivenVersions, VERSION_TYPES, type VersionTexts, versionTexts } from './write-preconditions.ts';
import { type WrittenRow, writeReturning } from './write-returning.ts';

/** Null leaves `email` and `is_active` unchanged. */
type Given = Author & ReturnType<typeof fieldsToSet> & VersionTexts & { readonly id: string };

const TYPES = {
  id: 'uuid',
  email: 'text',
  full_name: 'text',
  sets_full_name: 'boolean',
  is_active: 'boolean',
  ...VERSION_TYPES,
  ...AUTHOR_TYPES,
} as const;

/** Strictly later than before, also if the clock stands still or was set back. */
const laterThanBefore = sql`greatest(clock_timestamp(), users.updated_at + interval '1 millisecond')`;

const values = {
  email: sql`coalesce(given.email, users.email)`,
  full_name: sql`case when given.sets_full_name then given.full_name else users.full_name end`,
  is_active: sql`coalesce(given.is_active, users.is_active)`,
} as const;

/** On the right of `=` in `set`, columns have their values from before the update. */
const changed = sql`${sql.lit(FIELD_BITS.email)} * (users.email is distinct from ${values.email})::int
  + ${sql.lit(FIELD_BITS.full_name)} * (users.full_name is distinct from ${values.full_name})::int
  + ${sql.lit(FIELD_BITS.is_active)} * (users.is_active is distinct from ${values.is_active})::int`;

/**
 * Updates the given fields of a user. One statement serves every combination of fields: it sets an absent field to the
 * row's current value. Two writers of different fields therefore do not undo each other's changes. Resolves with
 * undefined if the user does not exist, or has another version.
 */
export function updatingUser({ statements }: WriteContext) {
  const update = statements.batchedWrite<Given, WrittenRow>('UPDATE users', TYPES, (given) =>
    writeReturning(
      sql`update users set email = ${values.email}, full_name = ${values.full_name}, is_active = ${values.is_active},
        updated_at = ${laterThanBefore}, version = version + 1, changed = ${changed}
      from given where users.id = given.id and ${isOfGivenVersions}`,
      { before: [given], record: recordedByEach('updated') },
    ),
  );

  return async (
    id: string,
    fields: UserUpdate,
    preconditions: Preconditions,
    author: Author,
  ): Promise<User | undefined> => {
    const given = { id, ...fieldsToSet(fields), ...versionTexts(preconditions), ...author };
    const row = await update(given).catch(refuseTakenEmail);
    return row && userIn(row as UserRow);
  };
}
