import { sql } from 'kysely';
import type { Statements } from '../postgres/index.ts';
import { headRow, isHead } from './head.ts';

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
