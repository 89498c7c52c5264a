import { sql } from 'kysely';
import { AUTHOR_TYPES, type Author, recorded } from '../changes/recording.ts';
import type { Preconditions } from '../http/preconditions.ts';
import type { Statements } from '../postgres/index.ts';
import { sqlTypesOf, type UpdatedName, updatedFields } from './fields.ts';
import { refusingTakenValues } from './taken-values.ts';
import type { User, UserUpdate } from './user.ts';
import { type UserRow, userIn, writeReturning } from './user-row.ts';
import { isOfGivenVersions, VERSION_TYPES, type VersionTexts, versionTexts } from './write-preconditions.ts';

/** The new values, and `sets`: the bits of the fields that the update sets. */
type Given = Author &
  VersionTexts & { readonly id: string; readonly sets: number } & {
    readonly [Name in UpdatedName]: User[Name] | null;
  };

const TYPES = {
  id: 'uuid',
  ...sqlTypesOf(updatedFields),
  sets: 'smallint',
  ...VERSION_TYPES,
  ...AUTHOR_TYPES,
} as const;

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

/**
 * Updates the given fields of a user. One statement serves every combination of fields: it sets an absent field to the
 * row's current value. Two writers of different fields therefore do not undo each other's changes. Resolves with
 * undefined if the user does not exist, or has another version.
 */
export function updatingUser(statements: Statements) {
  const write = statements.batchedWrite<Given, UserRow>('UPDATE users', TYPES, (given) =>
    writeReturning(
      sql`update users set ${assignments}, updated_at = ${laterThanBefore}, version = version + 1, changed = ${changed}
      from given where users.id = given.id and ${isOfGivenVersions}`,
      { before: [given], record: recorded('updated') },
    ),
  );
  const { writeUnlessTaken } = refusingTakenValues(statements);

  return async (
    id: string,
    update: UserUpdate,
    preconditions: Preconditions,
    author: Author,
  ): Promise<User | undefined> => {
    const given = { id, ...valuesToSet(update), ...versionTexts(preconditions), ...author };
    const row = await writeUnlessTaken(given, () => write(given));
    return row && userIn(row);
  };
}

/** The fields that an update sets. Null clears a field, or leaves it unchanged, as the table says. */
function valuesToSet(update: UserUpdate): Pick<Given, UpdatedName | 'sets'> {
  const values: Record<string, unknown> = {};
  let sets = 0;
  for (const { name, changeBit, nullOnUpdate } of updatedFields) {
    const value = update[name];
    values[name] = value ?? null;
    if (value === undefined || (value === null && nullOnUpdate === 'leaves')) continue;
    sets |= changeBit;
  }
  return { ...values, sets } as Pick<Given, UpdatedName | 'sets'>;
}
