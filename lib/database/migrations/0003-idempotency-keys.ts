import { type Kysely, sql } from 'kysely';

/** Which keys have been used within the last 24 hours, by digests alone, and which users came of them. */
export async function idempotencyKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('idempotency_keys')
    .ifNotExists()
    .addColumn('key', 'bytea', (column) => column.primaryKey())
    .addColumn('request', 'bytea', (column) => column.notNull())
    .addColumn('user_ids', sql`uuid[]`, (column) => column.notNull())
    .addColumn('created_at', 'timestamptz(3)', (column) => column.notNull().defaultTo(sql`now()`))
    .execute();
  // For those that clean up: rows come in this order, so that the index grows at its end alone.
  await db.schema
    .createIndex('idempotency_keys_created_at_idx')
    .ifNotExists()
    .on('idempotency_keys')
    .column('created_at')
    .execute();
}
