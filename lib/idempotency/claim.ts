import { type RawBuilder, sql } from 'kysely';
import type { Engine } from '../database/engines.ts';
import type { Fingerprint } from './fingerprint.ts';

/** What a statement needs to claim a key before it writes. */
export type Claim = Fingerprint & {
  /** How long it may wait for another that writes under the key: milliseconds, as text. */
  readonly lock_timeout: unknown;
};

/**
 * The common table expression `claimed`: one row when the key is this statement's, none when it is known. While another
 * statement under the key has not ended it waits, on the unique index. `ids` are the users that will be written: an
 * expression of type `uuid[]`. The limit on the wait lives as long as the statement, so that it works behind poolers; an
 * engine that has none is waited for until the request's time is up.
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

/** Keys are kept for 24 hours after the success; a replay does not prolong them. */
export const keptSince = sql`now() - interval '24 hours'`;
