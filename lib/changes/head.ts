import { type RawBuilder, sql } from 'kysely';

// While another transaction keeps an old snapshot open, as pg_dump does, PostgreSQL removes no dead row: neither the earlier
// versions of the head, nor changes that have got their position. So that no statement reads past these, the head is found
// from the newest entry of an index, and a change without a position by its sequence.

/** The head of the feed, as a table of one row. */
export const headRow = sql`(select position, expired, expired_id, is_interrupted, settled, late
  from user_changes_head order by position desc limit 1)`;

/** What an update or a lock of the head asks for: holds when another transaction has moved the head on meanwhile, too. */
export const isHead = sql`position >= (select position from user_changes_head order by position desc limit 1)`;

/**
 * Changes without a position, at most so many, where there is a `head`: those of a sequence that is not settled, and those
 * that came late, whose transaction had not ended when the sequence was settled.
 */
export function unnumbered(limit: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`((select * from user_changes_unnumbered where sequence > head.settled order by sequence limit ${limit})
    union all select * from user_changes_unnumbered where sequence = any(head.late))`;
}
