import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';

/** In changes: what one statement numbers at most, so that it stays short. */
const LARGEST_STEP = 5000;

/**
 * Gives positions to changes that have none yet, and resolves with whether all have one now that were committed before.
 * This is after their commit, so that no reader skips what was written early and committed late. One statement at a time does it, under the lock of the
 * head's row, in the order of the sequence: whoever began to write after another was answered comes after it. As one
 * statement it leaves no lock behind, whatever becomes of its client.
 */
export function numberingChanges(statements: Pick<Statements, 'run'>): () => Promise<boolean> {
  const number = prepare<Record<string, never>, { found: string }>(
    statements,
    'UPDATE user_changes_head',
    () => sql`
      with candidate as materialized (
        select sequence from user_changes_unnumbered order by sequence limit ${sql.lit(LARGEST_STEP)}
      ), head as materialized (
        select position from user_changes_head where exists (select from candidate) for update
      ), taken as (
        delete from user_changes_unnumbered as unnumbered using head
        where unnumbered.sequence = any(array(select sequence from candidate))
        returning unnumbered.*
      ), numbered as (
        insert into user_changes (position, user_id, version, type, changed, actor, request_id, time, identity)
        select (select position from head) + row_number() over (order by sequence),
          user_id, version, type, changed, actor, request_id, time, identity
        from taken
        returning position
      ), moved as (
        update user_changes_head set position = (select max(position) from numbered)
        where exists (select from numbered)
      )
      select count(*) as found from candidate`,
  );

  return async () => {
    const [row] = await number({});
    // Not how many it numbered: while it waited for the lock, another may have numbered some of those that it found.
    return Number(row?.found) < LARGEST_STEP;
  };
}
