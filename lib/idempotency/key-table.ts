import { type RawBuilder, sql } from 'kysely';
import { isInSchema } from '../postgres/index.ts';
import type { Fingerprint } from './fingerprint.ts';
import { KEY_LIFETIME_HOURS } from './idempotency-key.ts';

/**
 * The common table expression `claimed`: one row if this statement gets the key, and none if the key is known. It waits
 * on the unique index for an unfinished statement with the same key. `ids` are the users that will be written: an
 * expression of type `uuid[]`.
 */
export function claimed({ key, request }: Fingerprint, ids: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`claimed as (
    insert into idempotency_keys as held (key, request, user_ids, created_at)
    select ${key}::bytea, ${request}::bytea, (${ids}), clock.now from clock where ${isInSchema}
    on conflict (key) do update
      set request = excluded.request, user_ids = excluded.user_ids, created_at = excluded.created_at
      where excluded.created_at - held.created_at >= ${lifetime}
    returning held.key
  )`;
}

const lifetime = sql.raw(`interval '${KEY_LIFETIME_HOURS} hours'`);

/** The time since which keys are kept. */
export const keptSince = sql`now() - ${lifetime}`;

/** Deletes at most `limit` older keys, and returns a row for each. */
export function deleteExpiredKeys(limit: number): RawBuilder<unknown> {
  return sql`
    with expired as materialized (
      select key from idempotency_keys where created_at <= ${keptSince}
      order by created_at limit ${sql.lit(limit)} for update skip locked
    )
    delete from idempotency_keys where key = any(array(select key from expired)) returning true`;
}
