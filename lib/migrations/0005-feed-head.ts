import { sql } from 'kysely';
import type { Engine, SendSql } from '../postgres/index.ts';

/** The identity of each change, and further columns of the feed's head. */
export async function feedHead(send: SendSql, { isPostgres }: Engine): Promise<void> {
  for (const table of ['user_changes_unnumbered', 'user_changes']) {
    // Changes that are there have none. A default that came with the column would write all of them again.
    await send(sql`alter table ${sql.table(table)} add column if not exists identity integer`);
    await send(sql`alter table ${sql.table(table)} alter column identity
      set default (random() * 4294967295 - 2147483648)::integer`);
  }
  await send(sql`alter table user_changes_head
    -- The id of the change at "expired", for cursors behind it. It counts only while its position is "expired".
    add column if not exists expired_id text,
    -- Every change up to this sequence has a position, or is among the late ones, or its transaction has not ended yet.
    add column if not exists settled bigint not null default 0,
    add column if not exists late bigint[] not null default '{}',
    -- The highest sequence that has got a position.
    add column if not exists reached bigint not null default 0,
    -- An earlier value of "reached", and when it was noted. A while later, the sequence is settled up to that value.
    add column if not exists noted bigint not null default 0,
    add column if not exists noted_at timestamptz not null default 'epoch'`);
  await send(sql`create index if not exists user_changes_head_position_idx on user_changes_head (position)`);
  if (isPostgres) await enlarge(send);
}

/**
 * PostgreSQL reads a table of a few pages as a whole rather than by an index, and a connection may keep to that when dead
 * rows, or changes, have made the table large. So these tables have 128 pages (1 MB) from the beginning, and keep them.
 */
async function enlarge(send: SendSql): Promise<void> {
  for (const table of ['user_changes_unnumbered', 'user_changes', 'user_changes_head'])
    await send(sql`alter table ${sql.table(table)} set (vacuum_truncate = off)`);
  // Four rows of this length fill a page. They are added and deleted in one transaction, so no reader sees them.
  await send(sql`do $$
    declare kept text;
    begin
      insert into user_changes_unnumbered (sequence, user_id, version, type, changed, actor, request_id, time)
        overriding system value
        select -n, gen_random_uuid(), 0, 0, 0, '', repeat(' ', 1948), now() from generate_series(1, 512) as n;
      delete from user_changes_unnumbered where sequence < 0;
      insert into user_changes (position, user_id, version, type, changed, actor, request_id, time)
        select -n, gen_random_uuid(), 0, 0, 0, '', repeat(' ', 1948), now() from generate_series(1, 512) as n;
      delete from user_changes where position < 0;
      select expired_id into kept from user_changes_head for update;
      for n in 1 .. 512 loop
        update user_changes_head set expired_id = repeat(' ', 1900);
      end loop;
      update user_changes_head set expired_id = kept;
    end $$`);
}
