import { sql } from 'kysely';
import type { Statements } from '../postgres/index.ts';
import { headRow, isHead, unnumbered } from './head.ts';

/** Maximum number of changes that one statement numbers, so that it is short, and reads an index instead of sorting. */
const MAX_STEP = 1000;

/**
 * Maximum number of late changes. Beyond it the sequence is settled up to the first late one, and reads may meet dead
 * rows.
 */
const MAX_LATE = 5000;

/**
 * Gives positions to changes without one. Resolves with whether every change that was committed before the call now has
 * one. Positions are given after the commit, so that no reader skips a change that was written early and committed
 * late. One statement at a time gives them, under the lock of the head's row, in the order of the sequence: a write
 * that began after another was answered comes after it. Because it is one statement, a client that disappears leaves no
 * lock behind.
 */
export function numberingChanges(statements: Statements): () => Promise<boolean> {
  const number = statements.single<Record<string, never>, { found: string }>(
    'UPDATE user_changes_head',
    () => sql`
      with candidate as materialized (
        select unnumbered.sequence from ${headRow} as head
        cross join lateral ${unnumbered(sql.lit(MAX_STEP))} as unnumbered
        order by sequence limit ${sql.lit(MAX_STEP)}
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
          - count(*) filter (where sequence > settled) + cardinality(late) <= ${sql.lit(MAX_LATE)} as fits
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
    // The number of changes found, not numbered: another statement may have numbered some while this one waited.
    return Number(row?.found) < MAX_STEP;
  };
}

/** A write that began earlier can no longer be acknowledged, because a statement takes at most 600 s. */
const MAX_WRITE = sql`interval '15 minutes'`;

/**
 * Settles the sequence up to the number that it had reached 15 minutes ago. Earlier changes that are still late were
 * never committed, or never acknowledged. The statement reads all changes without a position. If readers would miss one
 * of them, because the sequence was set back or the change was committed even later, it is settled from the beginning
 * again.
 */
export function settlingSequence(statements: Statements): () => Promise<void> {
  const settle = statements.single<Record<string, never>, unknown>(
    'UPDATE user_changes_head',
    () => sql`
      with past as materialized (
        select settled, late, case when noted_at < now() - ${MAX_WRITE} then noted else 0 end as noted
        from ${headRow} as head
      ), seen as materialized (
        select noted as past, exists (
          select from user_changes_unnumbered
          where sequence <= noted or sequence <= settled and sequence <> all(late)
        ) as is_missed from past
      )
      update user_changes_head set
        settled = case when is_missed then 0 else greatest(settled, past) end,
        late = array(select sequence from unnest(late) as sequence where sequence > past and not is_missed),
        reached = case when is_missed then 0 else reached end,
        noted = case when is_missed then 0 else reached end,
        noted_at = now()
      from seen where ${isHead} and (is_missed or noted_at < now() - ${MAX_WRITE})`,
  );

  return async () => {
    await settle({});
  };
}

/** Number of the changes without a position, and age of the oldest one in seconds. */
export type Unnumbered = { readonly count: number; readonly age: number };

/** Reads these figures from PostgreSQL, which reads all changes without a position. */
export function askingForUnnumbered(statements: Statements): () => Promise<Unnumbered> {
  const ask = statements.single<Record<string, never>, { count: string; age: number }>(
    'SELECT user_changes_unnumbered',
    () => sql`
      select count(*), greatest(coalesce(extract(epoch from clock_timestamp() - min(time)), 0), 0)::float8 as age
      from ${headRow} as head cross join lateral ${unnumbered(sql`all`)} as unnumbered`,
  );

  return async () => {
    const [{ count = 0, age = 0 } = {}] = await ask({});
    return { count: Number(count), age };
  };
}
