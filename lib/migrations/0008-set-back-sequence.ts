import { sql } from 'kysely';
import type { Engine, SendSql } from '../postgres/index.ts';

/**
 * Changes whose sequence was set back, as after the promotion of a logical replica, are found by an index of their own,
 * which is empty otherwise. A number that another change without a position has makes no write fail.
 */
export async function setBackSequence(send: SendSql, { isPostgres }: Engine): Promise<void> {
  // What `settled` was when the change was written. Null in changes by instances of earlier versions.
  await send(sql`alter table user_changes_unnumbered add column if not exists settled_before bigint`);
  await send(sql`create index if not exists user_changes_unnumbered_set_back_idx
    on user_changes_unnumbered (sequence) where sequence <= settled_before`);
  // Writes draw the number themselves, by the name of the sequence, which needs a privilege that the default of the column
  // does not.
  await nameSequence(send);
  await send(sql`grant usage on sequence user_changes_unnumbered_sequence_seq to public`);
  if (!isPostgres) return;
  await send(sql`update user_changes_unnumbered set identity = 0 where identity is null`);
  await send(sql`alter table user_changes_unnumbered alter column identity set not null,
    drop constraint if exists user_changes_unnumbered_pkey,
    add constraint user_changes_unnumbered_pkey primary key (sequence, identity)`);
}

/**
 * PostgreSQL (seen with 18.4) gives the sequence another name while a concurrent migration has taken this one. That migration
 * can still fail.
 */
async function nameSequence(send: SendSql): Promise<void> {
  const [{ other } = { other: null }] = await send(sql<{ other: string | null }>`
    select pg_get_serial_sequence('user_changes_unnumbered', 'sequence') as other
    where to_regclass('user_changes_unnumbered_sequence_seq') is null`);
  if (other) await send(sql`alter sequence ${sql.raw(other)} rename to user_changes_unnumbered_sequence_seq`);
}
