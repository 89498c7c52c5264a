import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { migrations } from '../../migrations/index.ts';
import type { Settings } from '../../settings/settings.ts';
import { type Engine, engineOf } from '../engines.ts';
import { isInTheWay, isMissingTable } from '../faults.ts';
import type { Migration, SendSql } from './migration.ts';
import { connectForMigrations } from './migration-connection.ts';

/** In milliseconds. */
const POLL = 250;
const LONGEST_STRUGGLE = 10_000;

type Migrations = Readonly<Record<string, Migration>>;

type Options = {
  readonly known?: Migrations;
  /** Ends the run, wherever it is. */
  readonly signal?: AbortSignal;
};

/**
 * Runs the migrations that have not run yet. Of many instances one does it, and the others look again and again:
 * nobody waits within a statement. Migrations that this version does not know are those of a later one, and stay.
 *
 * @throws whatever stopped it; the next run goes on from there
 */
export async function runMigrations(
  postgres: Settings['postgres'],
  { known = migrations, signal }: Options = {},
): Promise<void> {
  const { send, lock, close } = await connectForMigrations(postgres, signal);
  try {
    while ((await pendingIn(send, known)).length > 0) {
      if (await lock()) await runPending(send, known, engineOf(postgres));
      else await sleep(POLL);
    }
  } finally {
    close();
  }
}

async function runPending(send: SendSql, known: Migrations, engine: Engine): Promise<void> {
  await insistently(() => createRecord(send));
  for (const [name, migration] of await pendingIn(send, known)) {
    await insistently(() => migration(send, engine));
    const timestamp = new Date().toISOString();
    await send(
      sql`insert into kysely_migration (name, timestamp) values (${name}, ${timestamp}) on conflict do nothing`,
    );
  }
}

/** What has run is recorded by name: instances of every version look there. */
async function pendingIn(send: SendSql, known: Migrations) {
  const recorded = await send(sql<{ name: string }>`select name from kysely_migration`).catch(noneRecorded);
  const names = new Set(recorded.map(({ name }) => name));
  return Object.entries(known).filter(([name]) => !names.has(name));
}

function noneRecorded(fault: unknown): [] {
  if (!isMissingTable(fault)) throw fault;
  return [];
}

/** As kysely's migrator makes it, which the first version of the service uses. */
async function createRecord(send: SendSql): Promise<void> {
  await send(sql`create table if not exists kysely_migration (
    name varchar(255) primary key, timestamp varchar(255) not null
  )`);
}

/** Others hold a lock now and then, or do the same at the same time: what can be sent again is, for a while. */
async function insistently(run: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + LONGEST_STRUGGLE;
  for (;;) {
    try {
      return await run();
    } catch (fault) {
      if (!isInTheWay(fault) || performance.now() > deadline) throw fault;
    }
    await sleep(POLL + Math.random() * 1000);
  }
}
