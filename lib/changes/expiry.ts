import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';

/** In changes: what one statement deletes at most, so that no caller notices. */
const STEP = 1000;

/**
 * Deletes the oldest changes up to the first that is younger than the retention, in the order of their positions, and
 * moves the end of what is kept along in the same statement: a reader either gets a change or learns that it has expired.
 * Resolves with whether there may be more to delete.
 */
export function expiringChanges(statements: Pick<Statements, 'run'>): (days: number) => Promise<boolean> {
  const expire = prepare<{ days: number }, { deleted: string }>(
    statements,
    'DELETE user_changes',
    ({ days }) => sql`
      with oldest as materialized (
        select position, time from user_changes order by position limit ${sql.lit(STEP)}
      ), kept as (
        select min(position) as first from oldest
        where time > now() - ${days}::float8 * interval '1 day'
      ), deleted as (
        delete from user_changes using oldest, kept
        where user_changes.position = oldest.position and (kept.first is null or oldest.position < kept.first)
        returning user_changes.position
      )
      update user_changes_head set expired = greatest(expired, (select max(position) from deleted))
      where exists (select from deleted)
      returning (select count(*) from deleted) as deleted`,
  );

  return async (days) => {
    const [row] = await expire({ days });
    return Number(row?.deleted ?? 0) === STEP;
  };
}
