import { type RawBuilder, sql } from 'kysely';
import type { Engine } from '../postgres/engines.ts';
import type { Fingerprint } from './fingerprint.ts';

/** What a statement needs to claim a key before it writes. */
export type Claim = Fingerprint & {
  /** How long the statement may wait for another one with the same key: milliseconds, as text. */
  readonly lock_timeout: unknown;
};

/**
 * The common table expression `claimed`: one row if this statement gets the key, and none if the key is known. It waits
 * on the unique index for an unfinished statement with the same key. `ids` are the users that will be written: an
 * expression of type `uuid[]`. The limit of the wait applies only to this statement, so that it works behind poolers.
 * With an engine without such a limit, the wait ends at the request's time limit.
 */
export function claimed(
  { key, request, lock_timeout }: Claim,
  ids: RawBuilder<unknown>,
  { limitsLockWaits }: Pick<Engine, 'limitsLockWaits'>,
): RawBuilder<unknown> {
  const limited = sql`from (select set_config('lock_timeout', ${lock_timeout}::text, true)) as limited`;
  return sql`claimed as (
    insert into idempotency_keys as held (key, request, user_ids)
    select ${key}::bytea, ${request}::bytea, ${ids}
    ${limitsLockWaits ? limited : sql``}
    on conflict (key) do update
      set request = excluded.request, user_ids = excluded.user_ids, created_at = excluded.created_at
      where held.created_at <= ${keptSince}
    returning held.key
  )`;
}

/** Keys are kept for 24 hours after the success. A replay does not prolong this time. */
export const keptSince = sql`now() - interval '24 hours'`;
