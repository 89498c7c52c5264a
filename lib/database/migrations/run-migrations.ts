import { setTimeout as sleep } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { Settings } from '../../settings.ts';
import { type Engine, engineOf } from '../engines.ts';
import { isInTheWay, isMissingTable } from '../faults.ts';
import { queriesOver, type Send } from '../queries.ts';
import { type Migration, migrations } from './index.ts';
import { connectForMigrations } from './migration-connection.ts';

/** What has been migrated, by name: instances of every version look here. */
type Recorded = { kysely_migration: { name: string; timestamp: string } };

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
  const connection = await connectForMigrations(postgres, signal);
  const db = queriesOver<Recorded>(connection.send);
  try {
    while ((await pendingIn(db, known)).length > 0) {
      if (await connection.lock()) await runPending(db, connection.send, known, engineOf(postgres));
      else await sleep(POLL);
    }
  } finally {
    connection.close();
  }
}

async function runPending(
  db: Kysely<Recorded>,
  send: Send,
  known: Migrations,
  engine: Engine,
): Promise<void> {
  await insistently(() => createRecord(db));
  for (const [name, migration] of await pendingIn(db, known)) {
    await insistently(() => migration(queriesOver(send), engine));
    const timestamp = new Date().toISOString();
    await db
      .insertInto('kysely_migration')
      .values({ name, timestamp })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

async function pendingIn(db: Kysely<Recorded>, known: Migrations) {
  const recorded = await db.selectFrom('kysely_migration').select('name').execute().catch(noneRecorded);
  const names = new Set(recorded.map(({ name }) => name));
  return Object.entries(known).filter(([name]) => !names.has(name));
}

function noneRecorded(fault: unknown): [] {
  if (!isMissingTable(fault)) throw fault;
  return [];
}

/** As kysely's migrator makes it, which the first version of the service uses. */
async function createRecord(db: Kysely<Recorded>): Promise<void> {
  await sql`create table if not exists kysely_migration (
    name varchar(255) primary key, timestamp varchar(255) not null
  )`.execute(db);
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
