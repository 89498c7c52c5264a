import { type Kysely, sql } from 'kysely';

/** The table of users. The unique index decides who has an address, in any case. */
export async function users(db: Kysely<unknown>): Promise<void> {
  await sql`create table if not exists users (
    id uuid primary key,
    email ${await foldingText(db)} not null,
    full_name text,
    is_active boolean not null default true,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    version bigint not null default 1,
    constraint users_email_length check (char_length(email) between 1 and 255),
    constraint users_full_name_length check (char_length(full_name) <= 255)
  )`.execute(db);
  await sql`create unique index if not exists users_email_key on users (lower(upper(email)))`.execute(db);
  await sql`create index if not exists users_created_at_id_idx on users (created_at, id)`.execute(db);
}

/**
 * Text whose letters of all scripts have a case, whatever the locale of the database, from PostgreSQL 17 on. Upper case
 * comes first, because two letters may share one: both small sigmas do.
 */
async function foldingText(db: Kysely<unknown>) {
  const { rows } = await sql`
    select from pg_collation
    where collname = 'pg_c_utf8' and current_setting('server_encoding') = 'UTF8'
  `.execute(db);
  return rows.length > 0 ? sql`text collate "pg_c_utf8"` : sql`text`;
}
