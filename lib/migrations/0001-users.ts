import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';

/**
 * The table of users. The unique index decides which user has an address. Before 1.2.0 it was one on `lower(upper(email))`,
 * which 0007 replaces.
 */
export async function users(send: SendSql): Promise<void> {
  await send(sql`create table if not exists users (
    id uuid primary key,
    email text not null,
    full_name text,
    is_active boolean not null default true,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    version bigint not null default 1,
    constraint users_email_length check (char_length(email) between 1 and 255),
    constraint users_full_name_length check (char_length(full_name) <= 255)
  )`);
  await send(sql`create unique index if not exists users_email_key on users (lower(email collate "C"))`);
  await send(sql`create index if not exists users_created_at_id_idx on users (created_at, id)`);
}
