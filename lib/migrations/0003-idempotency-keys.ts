import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';

/** Which keys were used within the last 24 hours, by digests only, and the users that they created. */
export async function idempotencyKeys(send: SendSql): Promise<void> {
  await send(sql`create table if not exists idempotency_keys (
    key bytea primary key,
    request bytea not null,
    user_ids uuid[] not null,
    created_at timestamptz(3) not null default now()
  )`);
  // For the cleanup. Rows come in this order, so that the index grows at its end only.
  await send(
    sql`create index if not exists idempotency_keys_created_at_idx on idempotency_keys (created_at)`,
  );
}
