import { type RawBuilder, sql } from 'kysely';
import type { Settings } from '../../settings/settings.ts';
import { type EngineProfile, engineProfile } from '../engine-profile.ts';
import { clientConfig } from '../hosts/connection-config.ts';
import { DeadConnectionWatch } from '../hosts/dead-connections.ts';
import { Hosts } from '../hosts/hosts.ts';
import { Session } from '../hosts/session.ts';
import { compile } from '../prepared-statement.ts';

const CONNECT_TIME_LIMIT_MS = 2000;

/** All users of a table queue behind a change of it that waits for the table's lock. */
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
export class MigrationConnection {
  readonly profile: EngineProfile;
  readonly #session: Session;
  readonly #signal: AbortSignal | undefined;

  private constructor(session: Session, profile: EngineProfile, signal: AbortSignal | undefined) {
    this.#session = session;
    this.profile = profile;
    this.#signal = signal;
    signal?.addEventListener('abort', this.close, { once: true });
  }

  /** Connects to the host that accepts writes. `signal` ends the run. */
  static async open(postgres: Settings['postgres'], signal?: AbortSignal): Promise<MigrationConnection> {
    const found = { ...postgres, servers: [await new Hosts(postgres).find()] as const };
    signal?.throwIfAborted();
    const session = new Session(clientConfig(found, SESSION), found);
    const connection = new MigrationConnection(session, engineProfile(postgres), signal);
    await session.openInTime(CONNECT_TIME_LIMIT_MS).catch((fault) => {
      connection.close();
      throw fault;
    });
    new DeadConnectionWatch(found).add(session);
    return connection;
  }

  readonly send: SendSql = async (statement) => {
    const { sql: written, parameters } = compile(statement);
    const isAlone = parameters.length > 0 || !this.profile.hasTransactionalDdl;
    const text = isAlone ? written : withLockTimeout(written);
    // Several statements in one text have several results.
    const results = [await this.#session.query({ text, values: [...parameters] })].flat();
    return results.at(-1)?.rows ?? [];
  };

  /** Whether this run is the one that migrates, until the connection closes. */
  async lock(): Promise<boolean> {
    // Several instances then migrate at the same time. Each finds the result of another one, or tries again.
    if (!this.profile.hasAdvisoryLocks) return true;
    const [row] = await this.send(sql<{ is_ours: boolean }>`select pg_try_advisory_lock(${LOCK}) as is_ours`);
    return row?.is_ours === true;
  }

  readonly close = (): void => {
    this.#signal?.removeEventListener('abort', this.close);
    this.#session.abandon();
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
