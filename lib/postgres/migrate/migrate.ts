import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { EventLog } from '../../observability/event-log.ts';
import type { Settings } from '../../settings/settings.ts';
import { type EngineProfile, engineProfile } from '../engine-profile.ts';
import { isMissingTable, isSchemaConflict } from '../faults.ts';
import { DeadConnectionWatch } from '../hosts/dead-connections.ts';
import { Hosts } from '../hosts/hosts.ts';
import { Session } from '../hosts/session.ts';
import { compile } from '../prepared-statement.ts';
import { reportWaits } from './wait-report.ts';

const POLL_MS = 250;
const CONNECT_TIME_LIMIT_MS = 2000;

/** For how long a statement that conflicts with those of other sessions is sent again. */
const MAX_RETRY_MS = 10_000;

/** All users of a table queue behind a change of it that waits for the table's lock. */
const LOCK_TIMEOUT_MS = 900;

/** Any number except that of kysely's migrator: version 1.0.0 waits for it in a statement, which holds a snapshot. */
const LOCK = '6083215794301857261';

/**
 * A statement has no time limit. If the client disappears, PostgreSQL ends the session and releases the lock: an idle
 * one after five seconds, a busy one when TCP gets no acknowledgement.
 */
const SESSION = {
  statement_timeout: '0',
  idle_session_timeout: '5000',
  client_connection_check_interval: '500',
  tcp_keepalives_idle: '3',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '2',
};

/** Sends one statement, and resolves with its rows. */
export type SendSql = <Row>(statement: RawBuilder<Row>) => Promise<readonly Row[]>;

/**
 * One statement or a few, outside of a transaction. Each changes nothing that exists already, because it may be sent
 * again after any failure, and suits the previous version of the service, which still runs beside it.
 */
export type Migration = (send: SendSql, engine: EngineProfile) => Promise<void>;

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
  const engine = engineProfile(postgres);
  const { host } = await new Hosts(postgres).find();
  signal?.throwIfAborted();
  const session = new Session(postgres, host, SESSION);
  const end = () => session.abandon();
  signal?.addEventListener('abort', end, { once: true });
  try {
    await session.openInTime(CONNECT_TIME_LIMIT_MS);
    new DeadConnectionWatch(postgres).add(session);
    const send = sendOver(session, engine);
    const report = (name: string) =>
      log && engine.hasOwnSessions ? reportWaits(postgres, session, log, name) : () => {};
    while ((await findPending(send, known)).length > 0) {
      if (await hasLock(send, engine)) await runPending(send, engine, known, report);
      else await sleep(POLL_MS);
    }
  } finally {
    signal?.removeEventListener('abort', end);
    session.abandon();
  }
}

function sendOver(session: Session, { isPostgres }: EngineProfile): SendSql {
  return async (statement) => {
    const { sql: written, parameters } = compile(statement);
    // `concurrently` is not allowed in a transaction, and no statement queues behind it.
    const isAlone = parameters.length > 0 || !isPostgres || / concurrently /.test(written);
    // Both statements in one text are one transaction, so no setting remains on a pooler's session.
    const text = isAlone ? written : `set local lock_timeout = ${LOCK_TIMEOUT_MS}; ${written}`;
    // Several statements in one text have several results.
    const results = [await session.query({ text, values: [...parameters] })].flat();
    return results.at(-1)?.rows ?? [];
  };
}

/** Whether this run is the one that migrates, until its session ends. */
async function hasLock(send: SendSql, { hasOwnSessions }: EngineProfile): Promise<boolean> {
  // Without advisory locks, several instances migrate at the same time. Each finds another one's result, or tries again.
  if (!hasOwnSessions) return true;
  const [row] = await send(sql<{ is_ours: boolean }>`select pg_try_advisory_lock(${LOCK}) as is_ours`);
  return row?.is_ours === true;
}

/** The record has the form of kysely's migrator, which version 1.0.0 uses. */
async function runPending(
  send: SendSql,
  engine: EngineProfile,
  known: Migrations,
  report: (name: string) => () => void,
): Promise<void> {
  await retryOnConflict(() =>
    send(sql`create table if not exists kysely_migration (
      name varchar(255) primary key, timestamp varchar(255) not null
    )`),
  );
  for (const [name, migration] of await findPending(send, known)) {
    await retryOnConflict(() => migration(send, engine)).finally(report(name));
    const timestamp = new Date().toISOString();
    await send(
      sql`insert into kysely_migration (name, timestamp) values (${name}, ${timestamp}) on conflict do nothing`,
    );
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
      if (!isSchemaConflict(fault) || performance.now() > deadline) throw fault;
    }
    await sleep(POLL_MS + Math.random() * 1000);
  }
}
