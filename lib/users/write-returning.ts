import { type RawBuilder, sql } from 'kysely';
import { type UserRow, userColumnNames, userColumns } from './user-row.ts';

type CteParts = {
  /** Common table expressions that `write` selects from. */
  readonly before?: readonly RawBuilder<unknown>[];
  /** The common table expression that records a change for each row of `written`. */
  readonly record: RawBuilder<unknown>;
  /** Whether `before` contains `claimed`. If so, no row means that the key was known. */
  readonly isKeyed?: boolean;
};

/** A user that was written, or a row without values, which says that the key is claimed. */
export type WrittenRow = UserRow | { readonly id: null };

/** The statement that writes users, records their changes, and returns the users as written. */
export function writeReturning(
  write: RawBuilder<unknown>,
  { before = [], record, isKeyed = false }: CteParts,
): RawBuilder<WrittenRow> {
  const written = sql`written as (
    ${write} returning ${userColumns}, users.changed, users.updated_at as moment
  )`;
  return sql`with ${sql.join([...before, written, record])}
    select ${userColumnNames}
    from ${isKeyed ? sql`claimed left join written on true` : sql`written`} order by id`;
}
