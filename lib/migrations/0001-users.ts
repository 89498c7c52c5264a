import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';

/** The table of users. The unique index decides which user has an address, in any case. */
export async function users(send: SendSql): Promise<void> {
  await send(sql`create table if not exists users (
    id uuid primary key,
    email ${await foldingText(send)} not null,
    full_name text,
    is_active boolean not null default true,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    version bigint not null default 1,
    constraint users_email_length check (char_length(email) between 1 and 255),
    constraint users_full_name_length check (char_length(full_name) <= 255)
  )`);
  await send(sql`create unique index if not exists users_email_key on users (lower(upper(email)))`);
  await send(sql`create index if not exists users_created_at_id_idx on users (created_at, id)`);
}

/**
 * Text whose letters of all scripts have a case, whatever the locale of the database, from PostgreSQL 17 on. Upper case
 * comes first, because two letters may share one: both small sigmas do.
 */
async function foldingText(send: SendSql) {
  const rows = await send(sql`
    select from pg_collation
    where collname = 'pg_c_utf8' and current_setting('server_encoding') = 'UTF8'
  `);
  return rows.length > 0 ? sql`text collate "pg_c_utf8"` : sql`text`;
}
