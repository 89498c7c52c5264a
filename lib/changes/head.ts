import { type RawBuilder, sql } from 'kysely';

/**
 * The head of the feed, as a table of one row. While another transaction keeps an old snapshot open, as pg_dump does,
 * PostgreSQL removes no dead rows: earlier versions of the head, and changes that have since got a position. To read
 * none of them, a statement finds the head by the newest entry of an index, and changes by their sequence.
 */
export const headRow = sql`(select position, expired, expired_id, is_interrupted, settled, late, noted, noted_at
  from user_changes_head order by position desc limit 1)`;

/** The condition for an update or a lock of the head. It also holds if another transaction has moved the head since. */
export const isHead = sql`position >= (select position from user_changes_head order by position desc limit 1)`;

/**
 * Changes without a position, for a table `head`: at most `limit` whose sequence is not settled, and all late ones,
 * whose transaction had not ended when their sequence was settled.
 */
export function unnumbered(limit: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`((select * from user_changes_unnumbered where sequence > head.settled order by sequence limit ${limit})
    union all select * from user_changes_unnumbered where sequence = any(head.late))`;
}
