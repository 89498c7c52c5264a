import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, type RawBuilder, sql } from 'kysely';

type Index = {
  readonly name: string;
  readonly isUnique?: boolean;
  /** What follows `on`: the table, and its columns or expressions in parentheses. */
  readonly on: RawBuilder<unknown>;
};

/** In milliseconds. */
const PAUSE = 500;

/**
 * Creates an index while the table is read and written. An invalid index that an interrupted attempt left behind is
 * dropped first. If another session is building the index, this one waits.
 *
 * @see PostgreSQL, CREATE INDEX, "Building Indexes Concurrently"
 */
export async function createIndexConcurrently(db: Kysely<unknown>, index: Index): Promise<void> {
  for (;;) {
    const found = await find(db, index.name);
    if (found?.is_valid) return;
    if (found?.is_being_built) await sleep(PAUSE);
    else if (found) await sql`drop index concurrently if exists ${sql.id(index.name)}`.execute(db);
    else await create(db, index);
  }
}

async function create(db: Kysely<unknown>, { name, isUnique, on }: Index): Promise<void> {
  const kind = isUnique ? sql`unique index` : sql`index`;
  await sql`create ${kind} concurrently if not exists ${sql.id(name)} on ${on}`.execute(db);
}

async function find(db: Kysely<unknown>, name: string) {
  const { rows } = await sql<{ is_valid: boolean; is_being_built: boolean }>`
    select indisvalid as is_valid, exists (
      select from pg_stat_progress_create_index where index_relid = indexrelid
    ) as is_being_built
    from pg_index where indexrelid = to_regclass(quote_ident(${name}))
  `.execute(db);
  return rows[0];
}
