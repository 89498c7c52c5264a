import { type RawBuilder, sql } from 'kysely';
import type { Settings } from '../../settings/settings.ts';
import { engineProfile } from '../engine-profile.ts';
import { clientConfig } from '../hosts/connection-config.ts';
import { closeDeadConnections } from '../hosts/dead-connections.ts';
import { Hosts } from '../hosts/hosts.ts';
import { Session } from '../hosts/session.ts';
import { compile } from '../prepared-statement.ts';

/** In milliseconds. */
const CONNECT_TIME_LIMIT_MS = 2000;

/** In milliseconds. All users of a table queue behind a change of it that waits for its lock. */
const LOCK_TIMEOUT_MS = 900;

/**
 * Any number except that of kysely's migrator, which version 1.0.0 uses. Its waiting statement holds a snapshot, and
 * `create index concurrently` waits for snapshots.
 */
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

/** The connection of one run of the migrations. */
export type MigrationConnection = {
  readonly send: SendSql;
  /** Whether this run is the one that migrates, until the connection closes. */
  lock(): Promise<boolean>;
  close(): void;
};

/** Connects for a run of the migrations; `signal` ends it. */
export async function connectForMigrations(
  postgres: Settings['postgres'],
  signal?: AbortSignal,
): Promise<MigrationConnection> {
  const found = { ...postgres, servers: [await new Hosts(postgres).find()] as const };
  signal?.throwIfAborted();
  const { hasAdvisoryLocks, hasTransactionalDdl } = engineProfile(postgres);
  const client = new Session(clientConfig(found, SESSION), found);
  const abort = () => client.abandon();
  const close = () => {
    signal?.removeEventListener('abort', abort);
    abort();
  };
  signal?.addEventListener('abort', abort, { once: true });
  await client.openInTime(CONNECT_TIME_LIMIT_MS).catch((fault) => {
    close();
    throw fault;
  });
  closeDeadConnections(found)(client);

  const send: SendSql = async (statement) => {
    const { sql: written, parameters } = compile(statement);
    const text = parameters.length === 0 && hasTransactionalDdl ? withLockTimeout(written) : written;
    // Several statements in one text have several results.
    const results = [await client.query({ text, values: [...parameters] })].flat();
    return results.at(-1)?.rows ?? [];
  };

  return {
    send,
    async lock() {
      // The second instance then finds the result of the first one, or tries again.
      if (!hasAdvisoryLocks) return true;
      const [row] = await send(sql<{ is_ours: boolean }>`select pg_try_advisory_lock(${LOCK}) as is_ours`);
      return row?.is_ours === true;
    },
    close,
  };
}

/**
 * Both statements in one text are one transaction, so no setting remains on a pooler's session. `concurrently` is not
 * allowed in a transaction, and no statement queues behind it.
 */
function withLockTimeout(statement: string): string {
  return / concurrently /.test(statement)
    ? statement
    : `set local lock_timeout = ${LOCK_TIMEOUT_MS}; ${statement}`;
}
