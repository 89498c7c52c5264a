import { sql } from 'kysely';
import type { Engine, SendSql } from '../postgres/index.ts';

/** The columns that a change has with and without a position. */
const change = sql`user_id uuid not null, version bigint not null, type smallint not null, changed smallint not null,
  actor text not null, request_id text not null, time timestamptz(3) not null`;

/** The changes of users: those without a position yet, those with one, and the head of the feed, a single row. */
export async function userChanges(send: SendSql, { isPostgres }: Engine): Promise<void> {
  // A bit for each field that the last update changed. An update can set it, because `set` reads the row as it was.
  await send(sql`alter table users add column if not exists changed smallint not null default 0`);
  await send(sql`create table if not exists user_changes_unnumbered (
    sequence bigint generated always as identity primary key, ${change}
  )`);
  // Every change passes through. Its dead rows must not pile up, because each look would read them.
  if (isPostgres) {
    await send(sql`alter table user_changes_unnumbered set (
      autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0
    )`);
  }
  await send(sql`create table if not exists user_changes (position bigint primary key, ${change})`);
  await send(
    sql`create index if not exists user_changes_user_id_position_idx on user_changes (user_id, position)`,
  );
  await send(sql`create table if not exists user_changes_head (
    is_head boolean primary key default true check (is_head),
    -- The last position that was given.
    position bigint not null default 0,
    -- Changes up to this position have been deleted.
    expired bigint not null default 0,
    -- Not used since 1.2.0.
    is_interrupted boolean not null default false
  )`);
  await send(sql`insert into user_changes_head default values on conflict do nothing`);
}
