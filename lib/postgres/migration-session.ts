import type { RawBuilder } from 'kysely';
import type { Settings } from '../settings/settings.ts';
import { compile } from './compile.ts';
import type { EngineProfile } from './sessions/engine-profile.ts';
import { DeadSessionWatch } from './sessions/late-or-dead-sessions.ts';
import { PostgresClient } from './sessions/postgres-client.ts';
import { PostgresHosts } from './sessions/postgres-hosts.ts';

/** All users of a table queue behind a change of it that waits for the table's lock. */
const SHORT_WAIT = 'set local statement_timeout = 0; set local lock_timeout = 900';

/**
 * PostgreSQL ends an autovacuum when another session has waited for its lock for `deadlock_timeout`. The lock of these
 * statements conflicts with that of an autovacuum, and lets reads and writes pass.
 */
const LONG_WAIT = `set local statement_timeout = 0;
  select set_config('lock_timeout', (least(setting::int, 600000) + 4000)::text, true) from pg_settings
  where name = 'deadlock_timeout'; lock table only $1 in share update exclusive mode`;

/** The table of a statement for which an autovacuum of it is in the way. */
const TABLE = /^(?:alter table|analyze|create (?:unique )?index\s[^(]*\son)\s+("?\w+"?)/;

/** Maximum time of a question in another session. A network may have forgotten its connection. */
const MAX_ASKING_MS = 5000;

/** If the client disappears, PostgreSQL ends an idle session after five seconds, and a busy one without acknowledgements. */
const SESSION = {
  lock_timeout: '0',
  statement_timeout: '0',
  idle_session_timeout: '5000',
  client_connection_check_interval: '500',
  tcp_keepalives_idle: '3',
  tcp_keepalives_interval: '2',
  tcp_keepalives_count: '2',
};

export type SendSql = <Row>(statement: RawBuilder<Row>) => Promise<readonly Row[]>;

/** A session for migrations, at the host that accepts writes. */
export class MigrationSession {
  readonly engine: EngineProfile;
  readonly #session: PostgresClient;
  #sent = '';

  private constructor(session: PostgresClient) {
    this.engine = session.engine;
    this.#session = session;
  }

  /** The session ends when `signal` is aborted. */
  static async open(postgres: Settings['postgres'], signal?: AbortSignal): Promise<MigrationSession> {
    const { host } = await new PostgresHosts(postgres).find();
    signal?.throwIfAborted();
    const session = new PostgresClient(postgres, host, SESSION);
    const end = () => session.abandon();
    signal?.addEventListener('abort', end, { once: true });
    session.once('end', () => signal?.removeEventListener('abort', end));
    await session.openInTime();
    new DeadSessionWatch().add(session);
    return new MigrationSession(session);
  }

  readonly send: SendSql = async (statement) => {
    const { sql: written, parameters } = compile(statement);
    // `concurrently` is not allowed in a transaction, and no statement queues behind it.
    const isAlone = parameters.length > 0 || !this.engine.isPostgres || / concurrently /.test(written);
    const [, table] = TABLE.exec(written) ?? [];
    const first = table ? [LONG_WAIT.replace('$1', table), SHORT_WAIT] : [SHORT_WAIT];
    // All statements in one text are one transaction, so no setting remains on a pooler's session.
    this.#sent = isAlone ? written : [...first, written].join('; ');
    const results = [await this.#session.query({ text: this.#sent, values: [...parameters] })].flat();
    return results.at(-1)?.rows ?? [];
  };

  /** Asks in another session. The parameters $1 and $2 are the pid and the last text of this one. */
  askAside(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return this.#session.askAside(MAX_ASKING_MS, async (asking) => {
      const values = [this.#session.processID, this.#sent];
      return (await asking.query({ text, values })).rows;
    });
  }

  end(): void {
    this.#session.abandon();
  }
}
