import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { headRow, isHead } from './head.ts';

/** In milliseconds: a write that began earlier is not acknowledged any more, since a statement takes at most 600 s. */
const LONGEST_WRITE = 15 * 60_000;

/**
 * Settles the sequence up to what had been reached a while ago: changes of it that are still late were never committed, or
 * never acknowledged. It looks at all changes without a position. If there is one that readers do not look for, because its
 * sequence was set back or it was committed even later, the sequence is settled from its beginning again.
 */
export function settlingSequence(statements: Pick<Statements, 'run'>): () => Promise<void> {
  const settle = prepare<{ upTo: string }, { reached: string }>(
    statements,
    'UPDATE user_changes_head',
    ({ upTo }) => sql`
      with seen as materialized (
        select exists (
          select from user_changes_unnumbered where sequence <= ${upTo}::bigint
            or sequence <= head.settled and sequence <> all(head.late)
        ) as is_missed from ${headRow} as head
      )
      update user_changes_head set
        settled = case when is_missed then 0 else greatest(settled, ${upTo}::bigint) end,
        late = array(
          select sequence from unnest(late) as sequence where sequence > ${upTo}::bigint and not is_missed
        ),
        reached = case when is_missed then 0 else reached end
      from seen where ${isHead} returning reached`,
  );
  let noted = { reached: '0', at: Number.NEGATIVE_INFINITY };

  return async () => {
    const isPast = performance.now() - noted.at > LONGEST_WRITE;
    const [row] = await settle({ upTo: isPast ? noted.reached : '0' });
    if (isPast && row) noted = { reached: row.reached, at: performance.now() };
  };
}
