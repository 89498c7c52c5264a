import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import { isSchemaConflict } from '../faults.ts';
import type { SendSql } from './migrate.ts';

type Index = {
  readonly name: string;
  readonly isUnique?: boolean;
  /** What follows `on`: the table, and its columns or expressions in parentheses. */
  readonly on: RawBuilder<unknown>;
};

/** In milliseconds. */
const PAUSE_MS = 500;

/**
 * Creates an index while the table is read and written. An invalid index that an interrupted attempt left behind is
 * dropped first. If another session is building the index, this one waits.
 *
 * @see PostgreSQL, CREATE INDEX, "Building Indexes Concurrently"
 */
export async function createIndexConcurrently(send: SendSql, { name, isUnique, on }: Index): Promise<void> {
  const kind = isUnique ? sql`unique index` : sql`index`;
  for (;;) {
    const found = await find(send, name);
    if (found?.is_valid) return;
    if (found?.is_being_built) await sleep(PAUSE_MS);
    else if (found) await send(sql`drop index concurrently if exists ${sql.id(name)}`);
    else await send(sql`create ${kind} concurrently if not exists ${sql.id(name)} on ${on}`);
  }
}

type Replacement = Omit<Index, 'isUnique'> & {
  /** The pattern of `like` that the definition of the new index matches, and the one of the old index does not. */
  readonly isReplaced: string;
  /** Runs before the new index is built. */
  readonly prepare?: () => Promise<void>;
};

/**
 * Replaces a unique index while the table is read and written. The new index is built beside the old one, with the suffix
 * that `reindex concurrently` gives it, which instances of the version before know. It takes the name in one transaction.
 */
export async function replaceIndexConcurrently(send: SendSql, replacement: Replacement): Promise<void> {
  const { name, on, isReplaced, prepare } = replacement;
  const [next, previous] = [`${name}_ccnew`, `${name}_ccold`];
  const drop = (index: string) => send(sql`drop index concurrently if exists ${sql.id(index)}`);
  const isOld = sql`pg_get_indexdef(to_regclass(${sql.lit(name)})) not like ${sql.lit(isReplaced)}`;
  while ((await send(sql`select where ${isOld}`)).length > 0) {
    try {
      await prepare?.();
      await createIndexConcurrently(send, { name: next, isUnique: true, on });
    } catch (fault) {
      // An invalid index refuses values, too.
      if (!isSchemaConflict(fault)) await drop(next);
      throw fault;
    }
    // Another run may have been faster.
    await send(sql`do $$ begin
      if ${isOld} and to_regclass(${sql.lit(next)}) is not null then
        alter index ${sql.id(name)} rename to ${sql.id(previous)};
        alter index ${sql.id(next)} rename to ${sql.id(name)};
      end if;
    end $$`);
  }
  await drop(previous);
  await drop(next);
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
