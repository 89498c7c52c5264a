import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';
import { createIndexConcurrently } from './concurrent-index.ts';

/** The name of the column until its index exists. No instance stores a value in it. */
const UNINDEXED = sql.ref('external_id_unindexed');

/**
 * The callers' own identifier of a user. The column gets its name when its unique index exists, because an instance of
 * this version stores values as soon as the column has this name.
 */
export async function externalIds(send: SendSql): Promise<void> {
  if (!(await hasColumn(send))) {
    await addIndexedColumn(send).catch(async (fault) => {
      if (!(await hasColumn(send))) throw fault;
    });
  }
  // On an engine without advisory locks, another instance may have been faster, and this one may have added a second column.
  await send(sql`alter table users drop column if exists ${UNINDEXED}`);
}

async function addIndexedColumn(send: SendSql): Promise<void> {
  await send(sql`alter table users add column if not exists ${UNINDEXED} text`);
  await createIndexConcurrently(send, {
    name: 'users_external_id_key',
    isUnique: true,
    table: 'users',
    // Users without one have no entry, so that their writes cost what they did.
    on: sql`(${UNINDEXED} collate "C") where ${UNINDEXED} is not null`,
  });
  await send(sql`alter table users rename column ${UNINDEXED} to external_id`);
}

async function hasColumn(send: SendSql): Promise<boolean> {
  const rows = await send(sql`
    select from pg_attribute where attrelid = to_regclass('users') and attname = 'external_id' and not attisdropped
  `);
  return rows.length > 0;
}
