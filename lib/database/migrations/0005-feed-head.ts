import { type Kysely, sql } from 'kysely';

/** The identity of each change, and what the head of the feed has to know beside positions. */
export async function feedHead(db: Kysely<unknown>): Promise<void> {
  // Changes that are there have none. A default that came with the column would write all of them again.
  for (const table of ['user_changes_unnumbered', 'user_changes']) {
    await sql`alter table ${sql.table(table)} add column if not exists identity integer`.execute(db);
    await sql`alter table ${sql.table(table)} alter column identity
      set default (random() * 4294967295 - 2147483648)::integer`.execute(db);
  }
  // The `id` of the change at `expired`, for cursors behind it. It counts only while its position is `expired`.
  await sql`alter table user_changes_head add column if not exists expired_id text`.execute(db);
}
