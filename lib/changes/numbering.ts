import { type RawBuilder, sql } from 'kysely';
import { clock, isInSchema, type PreparedStatement, type Statements } from '../postgres/index.ts';

/**
 * The head of the feed, as a table of one row. While another transaction keeps an old snapshot open, as pg_dump does,
 * PostgreSQL removes no dead rows: earlier versions of the head, and changes that have since got a position. To read
 * none of them, a statement finds the head by the newest entry of an index, and changes by their sequence.
 */
export const headRow = sql`(select position, expired, expired_id, settled, late, noted, noted_at
  from user_changes_head order by position desc limit 1)`;

/** The condition for an update or a lock of the head. It also holds if another transaction has moved the head since. */
export const isHead = sql`position >= (select position from user_changes_head order by position desc limit 1)`;

/** The first of the 2^48 numbers that the node of Citus has which gave this number. Without Citus, 0. */
const startOfNode = (sequence: RawBuilder<unknown>) => sql`(${sequence} >> 48 << 48)`;

/**
 * The condition that a sequence is in a range. If PostgreSQL does not know both ends, it expects one of 200 rows, also of a
 * table without statistics. With higher estimates it would compile each statement (`jit_above_cost`), for a second.
 */
const isBetween = (from: RawBuilder<unknown>, to: RawBuilder<unknown>) =>
  sql`sequence between ${from} and ${to}`;

/**
 * The condition that a number was given by a node whose numbers are lower than those of the node that gave `settled`.
 * Without Citus, its first part saves a search in the index.
 */
const isOfLowerNode = sql`head.settled >> 48 > 0 and sequence between 0 and ${startOfNode(sql`head.settled`)} - 1`;

/**
 * Changes without a position, for a table `head`, at most `limit` of each kind: those whose sequence is not settled, late
 * ones, whose transaction had not ended when their sequence was settled, those that were written after the sequence was
 * set back, and those that another node of Citus gave a lower number.
 */
export function unnumbered(limit: RawBuilder<unknown>): RawBuilder<unknown> {
  const kinds = [
    sql`sequence > head.settled`,
    sql`sequence = any(head.late) and ${isBetween(sql`0`, sql`head.settled`)}`,
    sql`sequence <= settled_before and sequence <= head.settled`,
    sql`${isOfLowerNode} and sequence <> all(head.late)`,
  ];
  const selects = kinds.map(
    (kind) => sql`(select * from user_changes_unnumbered where ${kind} order by sequence limit ${limit})`,
  );
  return sql`(${sql.join(selects, sql` union all `)})`;
}

/**
 * Whether several nodes of Citus gave numbers to changes without a position. These are not in the order of the writes. The
 * order by sequence makes PostgreSQL read an index.
 */
const isOfSeveralNodes = sql`exists (select from user_changes_unnumbered where ${isOfLowerNode})
  or (select true from user_changes_unnumbered
    where sequence >= ${startOfNode(sql`head.settled`)} + (1::bigint << 48) order by sequence limit 1)`;

/** Maximum number of changes that one statement numbers, so that it is short, and reads an index instead of sorting. */
const MAX_STEP = 1000;

/**
 * Maximum number of late changes: those whose transaction had not ended when their sequence was settled. Beyond it,
 * `settled` stops before the first late change, and reads may meet dead rows.
 */
const MAX_LATE = 5000;

/** A write that began earlier can no longer be acknowledged, because a statement takes at most 600 s. */
const MAX_WRITE = sql`interval '15 minutes'`;

const MAX_BIGINT = sql`9223372036854775807`;

type NoValues = Record<string, never>;

/** Gives positions to changes without one, after their commit. */
export class ChangeNumbering {
  readonly #number: PreparedStatement<NoValues, { found: string }>;
  readonly #settle: PreparedStatement<NoValues, unknown>;
  readonly #count: PreparedStatement<NoValues, { count: string; age: number }>;

  constructor(statements: Statements) {
    // 1. feed: the head, without a lock. 2. candidate: up to 1,000 changes without a position. By time, all are read, and
    //    some twice. If there is none, the next steps find nothing, and nothing is locked. 3. head: the head again, now
    //    locked. Another instance that numbers has ended. 4. taken: the candidates that it left, deleted from those without
    //    a position.
    // 5. step: the highest sequence of these, and the order in which they get positions. 6. placed, numbered: the
    //    changes with the next positions, inserted.
    // 7. settling: whether all sequences up to the highest one count as settled. Those that are missing among them are
    //    late: their transactions have not ended. 8. moved: the head with its new position, which becomes visible
    //    together with the changes, and before another instance gets the lock.
    this.#number = statements.ownSessionWrite(
      'UPDATE user_changes_head',
      () => sql`
        with feed as materialized (
          select head.*, ${isOfSeveralNodes} as is_by_time from ${headRow} as head
        ), candidate as materialized (
          select sequence, is_by_time from feed as head cross join lateral (
            ${unnumbered(sql.lit(MAX_STEP))}
            union all select * from user_changes_unnumbered where ${isBetween(sql`case when is_by_time then 0 end`, MAX_BIGINT)}
          ) as unnumbered
          order by case when is_by_time then time end, sequence limit ${sql.lit(MAX_STEP)}
        ), head as materialized (
          select position, settled, late from user_changes_head
          where exists (select from candidate) order by position desc limit 1 for update
        ), taken as (
          delete from user_changes_unnumbered as unnumbered using head
          where sequence = any(array(select sequence from candidate))
            and ${isBetween(sql`(select min(sequence) from candidate)`, sql`(select max(sequence) from candidate)`)}
          returning unnumbered.*
        ), step as materialized (
          select greatest(settled, max(sequence)) as top, greatest(settled, ${startOfNode(sql`max(sequence)`)}) as base,
            bool_or(sequence <= settled_before) or (select bool_or(is_by_time) from candidate) as is_by_time
          from head cross join taken group by settled
        ), placed as (
          select position + row_number() over (order by case when is_by_time then time end, sequence) as position,
            user_id, version, type, changed, actor, request_id, time, identity
          from head cross join taken cross join step
        ), numbered as (
          insert into user_changes (position, user_id, version, type, changed, actor, request_id, time, identity)
          select * from placed where ${isInSchema}
          returning position
        ), settling as (
          select settled, late, top, base,
            top - base - count(*) filter (where sequence > base) + cardinality(late) <= ${sql.lit(MAX_LATE)} as fits
          from head cross join taken cross join step group by settled, late, top, base
        ), moved as (
          update user_changes_head set position = (select max(position) from numbered),
            settled = case when fits then top
              else least(settling.settled, (select min(sequence) - 1 from unnest(settling.late) as sequence)) end,
            reached = greatest(reached, top),
            late = array(
              select unnest(settling.late) where fits
              union all select generate_series(base + 1, top) where fits
              except select sequence from taken
            )
          from settling where ${isHead}
        )
        select count(*) as found from candidate`,
    );
    this.#settle = statements.ownSessionWrite(
      'UPDATE user_changes_head',
      () => sql`
        with ${clock}, past as materialized (
          select settled, late, case when now - noted_at > ${MAX_WRITE} then noted else 0 end as noted
          from ${headRow} as head, clock
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
          noted_at = now
        from seen, clock where ${isHead} and (is_missed or now - noted_at > ${MAX_WRITE})`,
    );
    this.#count = statements.ownSessionRead(
      'SELECT user_changes_unnumbered',
      () => sql`
        select count(*), greatest(coalesce(extract(epoch from clock_timestamp() - min(time)), 0), 0)::float8 as age
        from ${headRow} as head cross join lateral ${unnumbered(sql`all`)} as unnumbered`,
    );
  }

  /**
   * Gives positions to changes without one, in the order of the sequence or, if it was set back or several nodes of Citus
   * gave its numbers, of their times: a write that began after another was answered comes after it. Resolves with whether
   * every change that was committed before the call now has one. Because it is one statement, a client that disappears
   * leaves no lock behind.
   */
  async numberChanges(): Promise<boolean> {
    const [row] = await this.#number.run({});
    return Number(row?.found) < MAX_STEP;
  }

  /**
   * Settles the sequence up to the number that it had reached 15 minutes ago. Earlier changes that are still late were
   * never committed, or never acknowledged. The statement reads all changes without a position. If readers would miss
   * one of them, because the sequence was set back or the change was committed even later, settling starts again from
   * the beginning.
   */
  async settleSequence(): Promise<void> {
    await this.#settle.run({});
  }

  /** The number of changes without a position, and the age of the oldest one in seconds. PostgreSQL reads all of them. */
  async countUnnumbered(): Promise<{ readonly count: number; readonly age: number }> {
    const [{ count = 0, age = 0 } = {}] = await this.#count.run({});
    return { count: Number(count), age };
  }
}
