import type { RawBuilder } from 'kysely';
import type { Settings } from '../settings/settings.ts';
import { compile } from './prepared-statement.ts';
import {
  DeadSessionWatch,
  type EngineProfile,
  engineProfile,
  PostgresHosts,
  Session,
} from './sessions/index.ts';

/** All users of a table queue behind a change of it that waits for the table's lock. */
const LOCK_TIMEOUT_MS = 900;

/** If the client disappears, PostgreSQL ends an idle session after five seconds, and a busy one without acknowledgements. */
const SESSION = {
  statement_timeout: '0',
  idle_session_timeout: '5000',
  client_connection_check_interval: '500',
  tcp_keepalives_idle: '3',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '2',
};

/** Also finds the sessions whose snapshot `create index concurrently` waits for. PostgreSQL may hide all but the pid. */
const BLOCKERS = `select pid, application_name,
  (extract(epoch from clock_timestamp() - xact_start) * 1000)::bigint::float8 as transaction_age_ms
  from pg_stat_activity where pid = any(pg_blocking_pids($1))`;

/** Sends one statement, and resolves with its rows. */
export type SendSql = <Row>(statement: RawBuilder<Row>) => Promise<readonly Row[]>;

/** A session for migrations, at the host that accepts writes. */
export class MigrationSession {
  readonly engine: EngineProfile;
  readonly #postgres: Settings['postgres'];
  readonly #session: Session;

  private constructor(postgres: Settings['postgres'], session: Session) {
    this.engine = engineProfile(postgres);
    this.#postgres = postgres;
    this.#session = session;
  }

  /** The session ends when `signal` is aborted. */
  static async open(postgres: Settings['postgres'], signal?: AbortSignal): Promise<MigrationSession> {
    const { host } = await new PostgresHosts(postgres).find();
    signal?.throwIfAborted();
    const session = new Session(postgres, host, SESSION);
    const end = () => session.abandon();
    signal?.addEventListener('abort', end, { once: true });
    session.once('end', () => signal?.removeEventListener('abort', end));
    await session.openInTime();
    new DeadSessionWatch(postgres).add(session);
    return new MigrationSession(postgres, session);
  }

  readonly send: SendSql = async (statement) => {
    const { sql: written, parameters } = compile(statement);
    // `concurrently` is not allowed in a transaction, and no statement queues behind it.
    const isAlone = parameters.length > 0 || !this.engine.isPostgres || / concurrently /.test(written);
    // Both statements in one text are one transaction, so no setting remains on a pooler's session.
    const text = isAlone ? written : `set local lock_timeout = ${LOCK_TIMEOUT_MS}; ${written}`;
    const results = [await this.#session.query({ text, values: [...parameters] })].flat();
    return results.at(-1)?.rows ?? [];
  };

  /** The sessions for which this one waits, as another session sees them. */
  async findBlockers(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const asking = new Session(this.#postgres, this.#session.at);
    try {
      await asking.openInTime();
      return (await asking.query({ text: BLOCKERS, values: [this.#session.processID] })).rows;
    } finally {
      asking.abandon();
    }
  }

  end(): void {
    this.#session.abandon();
  }
}
