import { sql } from 'kysely';
import { prepare } from '../postgres/prepared.ts';
import type { Statements } from '../postgres/statements.ts';
import { keptSince } from './claim.ts';

/** Maximum number of keys that one statement deletes, so that no caller notices it. */
const STEP = 1000;

/** Deletes keys that are older than 24 hours. Resolves with whether there may be more. */
export function expiringKeys(statements: Pick<Statements, 'run'>): () => Promise<boolean> {
  const expire = prepare<Record<string, never>, unknown>(
    statements,
    'DELETE idempotency_keys',
    () => sql`
      delete from idempotency_keys
      where key = any(array(
        select key from idempotency_keys where created_at <= ${keptSince}
        order by created_at limit ${sql.lit(STEP)} for update skip locked
      ))
      returning true`,
  );

  return async () => (await expire({})).length === STEP;
}
