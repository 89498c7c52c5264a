import { type Kysely, sql } from 'kysely';

/** The table of users; the unique index decides who owns an address, whatever its case. */
export async function users(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('users')
    .ifNotExists()
    .addColumn('id', 'uuid', (column) => column.primaryKey())
    .addColumn('email', await foldingText(db), (column) => column.notNull())
    .addColumn('full_name', 'text')
    .addColumn('is_active', 'boolean', (column) => column.notNull().defaultTo(true))
    .addColumn('created_at', 'timestamptz(3)', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('updated_at', 'timestamptz(3)', (column) => column.notNull().defaultTo(sql`now()`))
    .addColumn('version', 'bigint', (column) => column.notNull().defaultTo(1))
    .addCheckConstraint('users_email_length', sql`char_length(email) between 1 and 255`)
    .addCheckConstraint('users_full_name_length', sql`char_length(full_name) <= 255`)
    .execute();
  await db.schema
    .createIndex('users_email_key')
    .ifNotExists()
    .unique()
    .on('users')
    .expression(sql`lower(upper(email))`)
    .execute();
  await db.schema
    .createIndex('users_created_at_id_idx')
    .ifNotExists()
    .on('users')
    .columns(['created_at', 'id'])
    .execute();
}

/**
 * Text whose letters of all scripts have a case, whatever the locale of the database: from PostgreSQL 17 on, in UTF-8.
 * Upper case goes first, for two letters may share one: both small sigmas do.
 */
async function foldingText(db: Kysely<unknown>) {
  const { rows } = await sql`
    select from pg_collation
    where collname = 'pg_c_utf8' and current_setting('server_encoding') = 'UTF8'
  `.execute(db);
  return rows.length > 0 ? sql`text collate "pg_c_utf8"` : sql`text`;
}
