import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { EventLog } from '../observability/event-log.ts';
import {
  type Engine,
  isLockTimeout,
  isMissingTable,
  isSchemaConflict,
  MigrationSession,
  type SendSql,
} from '../postgres/index.ts';
import type { Settings } from '../settings/settings.ts';
import { reportWaits } from './wait-report.ts';

const POLL_MS = 250;

/** Any number except that of kysely's migrator: version 1.0.0 waits for it in a statement, which holds a snapshot. */
const LOCK = '6083215794301857261';

/** For how long a statement that conflicts with those of other sessions, and waits for none of them, is sent again. */
const MAX_RETRY_MS = 10_000;

/**
 * One statement or a few, outside of a transaction. Each changes nothing that exists already, because it may be sent
 * again after any failure, and suits the previous version of the service, which still runs beside it.
 */
export type Migration = (send: SendSql, engine: Engine) => Promise<void>;

type Migrations = Readonly<Record<string, Migration>>;

/**
 * Runs the migrations that have not run yet, in their order, until `signal`, at the host that accepts writes. One of
 * several instances runs them. Recorded migrations that are not in the list belong to a later version, and are ignored.
 *
 * @throws the fault that ended the run; the next run continues there
 */
export async function migrate(
  postgres: Settings['postgres'],
  known: Migrations,
  signal?: AbortSignal,
  log?: EventLog,
): Promise<void> {
  const session = await MigrationSession.open(postgres, signal);
  try {
    while ((await findPending(session.send, known)).length > 0) {
      if (await takeLock(session)) await runPending(session, known, log);
      else await sleep(POLL_MS);
    }
  } finally {
    session.end();
  }
}

/** Tries to become the session that migrates, until it ends. Resolves with whether it is. */
async function takeLock({ send, engine }: MigrationSession): Promise<boolean> {
  // Without advisory locks, several instances migrate at the same time. Each finds another one's result, or tries again.
  if (!engine.hasOwnSessions) return true;
  const [row] = await send(sql<{ is_ours: boolean }>`select pg_try_advisory_lock(${LOCK}) as is_ours`);
  return row?.is_ours === true;
}

/** The record has the form of kysely's migrator, which version 1.0.0 uses. */
async function runPending(session: MigrationSession, known: Migrations, log?: EventLog): Promise<void> {
  const { send, engine } = session;
  await retryOnConflict(() =>
    send(sql`create table if not exists kysely_migration (
      name varchar(255) primary key, timestamp varchar(255) not null
    )`),
  );
  for (const [name, migration] of await findPending(send, known)) {
    const endReport = log ? reportWaits(session, log, name) : () => {};
    await retryOnConflict(async () => {
      await migration(send, engine);
      const timestamp = new Date().toISOString();
      await send(
        sql`insert into kysely_migration (name, timestamp) values (${name}, ${timestamp}) on conflict do nothing`,
      );
    }).finally(endReport);
  }
}

/** Migrations are recorded by name, in every version of the service. */
async function findPending(send: SendSql, known: Migrations) {
  const recorded = await send(sql<{ name: string }>`select name from kysely_migration`).catch((fault) => {
    if (isMissingTable(fault)) return [];
    throw fault;
  });
  const names = new Set(recorded.map(({ name }) => name));
  return Object.entries(known).filter(([name]) => !names.has(name));
}

/** Runs a statement that may be sent again, until no other session prevents it. */
async function retryOnConflict(run: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + MAX_RETRY_MS;
  for (;;) {
    try {
      await run();
      return;
    } catch (fault) {
      if (!isSchemaConflict(fault) || (!isLockTimeout(fault) && performance.now() > deadline)) throw fault;
    }
    await sleep(POLL_MS + Math.random() * 1000);
  }
}
