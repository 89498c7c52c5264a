import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';

type Index = {
  readonly name: string;
  readonly isUnique?: boolean;
  readonly table: string;
  /** What follows the table: columns or expressions in parentheses, and a condition. */
  readonly on: RawBuilder<unknown>;
};

const PAUSE_MS = 500;

/**
 * Creates an index while the table is read and written. An invalid index that an interrupted attempt left behind is
 * dropped first. If another session is building the index, this one waits. The index of an empty table, such as one of a new
 * database, is created without `concurrently`, which would wait for every older snapshot (of a pg_dump, for example).
 *
 * @see PostgreSQL, CREATE INDEX, "Building Indexes Concurrently"
 */
export async function createIndexConcurrently(
  send: SendSql,
  { name, isUnique, table, on }: Index,
): Promise<void> {
  const kind = isUnique ? sql`unique index` : sql`index`;
  for (;;) {
    const found = await find(send, name);
    if (found?.is_valid) return;
    if (found?.is_being_built) await sleep(PAUSE_MS);
    else if (found) await send(sql`drop index concurrently if exists ${sql.id(name)}`);
    else {
      const isEmpty = (await send(sql`select from ${sql.table(table)} limit 1`)).length === 0;
      const how = isEmpty ? sql`` : sql`concurrently`;
      await send(sql`create ${kind} ${how} if not exists ${sql.id(name)} on ${sql.table(table)} ${on}`);
    }
  }
}

async function find(send: SendSql, name: string) {
  const rows = await send(sql<{ is_valid: boolean; is_being_built: boolean }>`
    select indisvalid as is_valid, exists (
      select from pg_stat_progress_create_index where index_relid = indexrelid
    ) as is_being_built
    from pg_index where indexrelid = to_regclass(quote_ident(${name}))
  `);
  return rows[0];
}
