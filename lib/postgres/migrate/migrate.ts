import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Settings } from '../../settings/settings.ts';
import { type EngineProfile, engineProfile } from '../engine-profile.ts';
import { isMissingTable, isSchemaConflict } from '../faults.ts';
import { connectForMigrations, type SendSql } from './migration-connection.ts';

/** In milliseconds. */
const POLL_MS = 250;
const MAX_RETRY_MS = 10_000;

/**
 * One statement or a few, outside of a transaction. Each changes nothing that exists already, because it may be sent
 * again after any failure, and suits the previous version of the service, which still runs beside it.
 */
export type Migration = (send: SendSql, engine: EngineProfile) => Promise<void>;

type Migrations = Readonly<Record<string, Migration>>;

/**
 * Runs the migrations that have not run yet, in their order, until `signal`. One of several instances runs them; the
 * others ask again and again, so that none of them waits within a statement. Recorded migrations that are not in the
 * list belong to a later version, and are ignored.
 *
 * @throws the fault that ended the run; the next run continues there
 */
export async function migrate(
  postgres: Settings['postgres'],
  known: Migrations,
  signal?: AbortSignal,
): Promise<void> {
  const { send, lock, close } = await connectForMigrations(postgres, signal);
  try {
    while ((await findPending(send, known)).length > 0) {
      if (await lock()) await runPending(send, known, engineProfile(postgres));
      else await sleep(POLL_MS);
    }
  } finally {
    close();
  }
}

async function runPending(send: SendSql, known: Migrations, engine: EngineProfile): Promise<void> {
  await retryOnConflict(() => createRecord(send));
  for (const [name, migration] of await findPending(send, known)) {
    await retryOnConflict(() => migration(send, engine));
    const timestamp = new Date().toISOString();
    await send(
      sql`insert into kysely_migration (name, timestamp) values (${name}, ${timestamp}) on conflict do nothing`,
    );
  }
}

/** What has run is recorded by name: instances of every version look there. */
async function findPending(send: SendSql, known: Migrations) {
  const recorded = await send(sql<{ name: string }>`select name from kysely_migration`).catch(
    assumeNoneRecorded,
  );
  const names = new Set(recorded.map(({ name }) => name));
  return Object.entries(known).filter(([name]) => !names.has(name));
}

function assumeNoneRecorded(fault: unknown): [] {
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
async function retryOnConflict(run: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + MAX_RETRY_MS;
  for (;;) {
    try {
      return await run();
    } catch (fault) {
      if (!isSchemaConflict(fault) || performance.now() > deadline) throw fault;
    }
    await sleep(POLL_MS + Math.random() * 1000);
  }
}
