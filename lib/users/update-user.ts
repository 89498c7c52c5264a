import { sql } from 'kysely';
import { type Author, recordedByEach } from '../changes/recording.ts';
import type { Preconditions } from '../http/preconditions.ts';
import { prepare } from '../postgres/prepared.ts';
import { type BatchItemOf, batchValues, toBatchItem } from './batch-values.ts';
import { refuseTakenEmail } from './create-user.ts';
import { fieldsToSet, type User, type UserUpdate } from './user.ts';
import { type UserRow, userIn } from './user-row.ts';
import type { WriteContext } from './write-context.ts';
import { isOfVersions, type Versions, versionsFor } from './write-preconditions.ts';
import { type WrittenRow, writeReturning } from './write-returning.ts';

/**
 * Null leaves `email` and `is_active` unchanged. A list of versions is one text, because PostgreSQL requires all lists
 * within a list to have the same length.
 */
type Given = Author &
  ReturnType<typeof fieldsToSet> & { readonly [List in keyof Versions]: string | null } & {
    readonly id: string;
  };

const NAMES = ['id', 'email', 'full_name', 'sets_full_name', 'is_active', 'among', 'except'] as const;

/** Strictly later than before, also if the clock stands still or was set back. */
const laterThanBefore = sql`greatest(clock_timestamp(), users.updated_at + interval '1 millisecond')`;

const values = {
  email: sql`coalesce(given.email, users.email)`,
  full_name: sql`case when given.sets_full_name then given.full_name else users.full_name end`,
  is_active: sql`coalesce(given.is_active, users.is_active)`,
} as const;

/** On the right of `=` in `set`, columns have their values from before the update. */
const FIELD_BITS = { email: 1, full_name: 2, is_active: 4 };
const changed = sql`${sql.lit(FIELD_BITS.email)} * (users.email is distinct from ${values.email})::int
  + ${sql.lit(FIELD_BITS.full_name)} * (users.full_name is distinct from ${values.full_name})::int
  + ${sql.lit(FIELD_BITS.is_active)} * (users.is_active is distinct from ${values.is_active})::int`;

/**
 * Updates the given fields of a user. One statement serves every combination of fields: it sets an absent field to the
 * row's current value. Two writers of different fields therefore do not undo each other's changes. Resolves with
 * undefined if the user does not exist, or has another version.
 */
export function updatingUser({ statements }: WriteContext) {
  const update = prepare<BatchItemOf<Given>, WrittenRow>(
    statements,
    'UPDATE users',
    (item) =>
      writeReturning(
        sql`update users set email = ${values.email}, full_name = ${values.full_name}, is_active = ${values.is_active},
        updated_at = ${laterThanBefore}, version = version + 1, changed = ${changed}
      from given where users.id = given.id and ${isOfVersions({ among: sql`given.among`, except: sql`given.except` })}`,
        { before: [batchValues(item, NAMES)], record: recordedByEach('updated') },
      ),
    'item',
  );

  return async (
    id: string,
    fields: UserUpdate,
    preconditions: Preconditions,
    author: Author,
  ): Promise<User | undefined> => {
    const { among, except } = versionsFor(preconditions);
    const versions = { among: among && `{${among}}`, except: except && `{${except}}` };
    const [row] = await update(toBatchItem({ id, ...fieldsToSet(fields), ...versions, ...author })).catch(
      refuseTakenEmail,
    );
    return row && userIn(row as UserRow);
  };
}
