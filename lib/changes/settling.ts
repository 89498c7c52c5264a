import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { headRow, isHead } from './head.ts';

/** A write that began earlier is not acknowledged any more: a statement takes at most 600 s. */
const LONGEST_WRITE = sql`interval '15 minutes'`;

/**
 * Settles the sequence up to what had been reached a while ago: changes of it that are still late were never committed, or
 * never acknowledged. It looks at all changes without a position. If there is one that readers do not look for, because its
 * sequence was set back or it was committed even later, the sequence is settled from its beginning again.
 */
export function settlingSequence(statements: Pick<Statements, 'run'>): () => Promise<void> {
  const settle = prepare<Record<string, never>, unknown>(
    statements,
    'UPDATE user_changes_head',
    () => sql`
      with past as materialized (
        select settled, late, case when noted_at < now() - ${LONGEST_WRITE} then noted else 0 end as noted
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
      from seen where ${isHead} and (is_missed or noted_at < now() - ${LONGEST_WRITE})`,
  );

  return async () => {
    await settle({});
  };
}
