import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { headRow, isHead, unnumbered } from './head.ts';

/** In changes: the most that one statement numbers, so that it stays short, and reads an index rather than sorts. */
const LARGEST_STEP = 1000;

/** In changes: with more late ones the sequence is settled up to the first of them, and looks may read past dead rows. */
const MOST_LATE = 5000;

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
        select unnumbered.sequence from ${headRow} as head
        cross join lateral ${unnumbered(sql.lit(LARGEST_STEP))} as unnumbered
        order by sequence limit ${sql.lit(LARGEST_STEP)}
      ), head as materialized (
        select position, settled, late from user_changes_head
        where ${isHead} and exists (select from candidate) for update
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
      ), settling as (
        select settled, late, greatest(settled, max(sequence)) as top, max(sequence) - settled
          - count(*) filter (where sequence > settled) + cardinality(late) <= ${sql.lit(MOST_LATE)} as fits
        from head cross join taken group by settled, late
      ), moved as (
        update user_changes_head set position = (select max(position) from numbered),
          settled = case when fits then top
            else least(settling.settled, (select min(sequence) - 1 from unnest(settling.late) as sequence)) end,
          reached = greatest(reached, top),
          late = array(
            select unnest(settling.late) where fits
            union all select generate_series(settling.settled + 1, top) where fits
            except select sequence from taken
          )
        from settling where ${isHead}
      )
      select count(*) as found from candidate`,
  );

  return async () => {
    const [row] = await number({});
    // Not how many it numbered: while it waited for the lock, another may have numbered some of those that it found.
    return Number(row?.found) < LARGEST_STEP;
  };
}
