import { type CreateTableBuilder, type Kysely, sql } from 'kysely';
import type { Engine } from '../engines.ts';

/** The changes of users: those without a position yet, those with one, and the head of the feed, a single row. */
export async function userChanges(
  db: Kysely<unknown>,
  { hasAutovacuum }: Pick<Engine, 'hasAutovacuum'>,
): Promise<void> {
  // Which fields the last update changed, a bit for each: what is set there sees the row as it was.
  await sql`alter table users add column if not exists changed smallint not null default 0`.execute(db);
  await change(
    db.schema
      .createTable('user_changes_unnumbered')
      .ifNotExists()
      .addColumn('sequence', 'bigint', (column) => column.generatedAlwaysAsIdentity().primaryKey()),
  ).execute();
  // Every change passes through: its dead rows must not pile up, for each look would read them.
  if (hasAutovacuum) await tuneAutovacuum(db);
  await change(
    db.schema
      .createTable('user_changes')
      .ifNotExists()
      .addColumn('position', 'bigint', (column) => column.primaryKey()),
  ).execute();
  await db.schema
    .createIndex('user_changes_user_id_position_idx')
    .ifNotExists()
    .on('user_changes')
    .columns(['user_id', 'position'])
    .execute();
  await db.schema
    .createTable('user_changes_head')
    .ifNotExists()
    .addColumn('is_head', 'boolean', (column) => column.primaryKey().defaultTo(true).check(sql`is_head`))
    // The last position that was given.
    .addColumn('position', 'bigint', (column) => column.notNull().defaultTo(0))
    // Changes up to this position are kept no more.
    .addColumn('expired', 'bigint', (column) => column.notNull().defaultTo(0))
    // Users have been written without changes since.
    .addColumn('is_interrupted', 'boolean', (column) => column.notNull().defaultTo(false))
    .execute();
  await sql`insert into user_changes_head default values on conflict do nothing`.execute(db);
}

function tuneAutovacuum(db: Kysely<unknown>) {
  return sql`alter table user_changes_unnumbered set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0
  )`.execute(db);
}

/** What is kept of a change. */
function change<Columns extends string>(table: CreateTableBuilder<string, Columns>) {
  return table
    .addColumn('user_id', 'uuid', (column) => column.notNull())
    .addColumn('version', 'bigint', (column) => column.notNull())
    .addColumn('type', 'smallint', (column) => column.notNull())
    .addColumn('changed', 'smallint', (column) => column.notNull())
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('time', 'timestamptz(3)', (column) => column.notNull());
}
