import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';

/** The callers' own identifier of a user. */
export async function externalIds(send: SendSql): Promise<void> {
  await send(sql`alter table users add column if not exists external_id text`);
}
