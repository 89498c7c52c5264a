import { sql } from 'kysely';
import type { Statements } from '../postgres/index.ts';
import { keptSince } from './claim.ts';

/** Maximum number of keys that one statement deletes, so that no caller notices it. */
const STEP = 1000;

/** Deletes keys that are older than 24 hours. Resolves with whether there may be more. */
export function expiringKeys(statements: Statements): () => Promise<boolean> {
  const expire = statements.single<Record<string, never>, unknown>(
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
