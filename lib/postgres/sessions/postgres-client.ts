import { setTimeout as sleep } from 'node:timers/promises';
import PgClient from 'pg/lib/client.js';
import type { PostgresServer, Settings } from '../../settings/settings.ts';
import { type EngineProfile, engineProfile } from './engine-profile.ts';
import { endsSession, withCode } from './faults.ts';
import { shareKeys } from './password-key.ts';
import { type RowReceiver, takeRows } from './rows.ts';
import { SESSION, type SessionParameters, sessionConfig } from './session-config.ts';

type Postgres = Settings['postgres'];

/** PostgreSQL closes the connection of a session that ends within this time, if it is not lost. */
const MAX_CLOSING_MS = 100;

const RESPONSE_POLL_MS = 5;

/** How long opening a session may take. A host that needs longer counts as out of reach. */
export function connectTimeLimitMs({ poolTimeout }: Pick<Postgres, 'poolTimeout'>): number {
  return Math.min(Math.max(poolTimeout, 1), 5) * 1000;
}

/** pg's client in JavaScript, without what it takes from the environment. Nothing that arrives ends the process. */
export class PostgresClient extends PgClient {
  readonly server: PostgresServer;
  readonly #settings: Postgres;
  readonly engine: EngineProfile;
  readonly isPooled: boolean;
  readonly parameters: SessionParameters;
  readonly #reported = new Map<string, string>();
  /** The fault of PostgreSQL or of the connection that ends it. */
  #fault: unknown;
  #abandoned: { readonly reason: unknown } | undefined;
  #ending: Promise<void> | undefined;
  /** Receives each row in place of pg. */
  receiver: RowReceiver | undefined;
  /** When its PostgreSQL started, which distinguishes servers. Undefined if `processID` says nothing: see `#identify`. */
  serverStarted: string | undefined;
  /** When bytes last arrived, and when the watch for dead sessions last saw it idle (`performance.now()`). */
  heardAt = performance.now();
  idleAt = this.heardAt;
  /** When PostgreSQL has shown since then that it runs the statement of the session. */
  seenRunningAt = Number.NEGATIVE_INFINITY;

  constructor(settings: Postgres, server: PostgresServer, parameters: SessionParameters = SESSION) {
    const config = sessionConfig(settings, server, parameters);
    shareKeys();
    super(config);
    this.server = server;
    this.#settings = settings;
    this.engine = engineProfile(settings);
    this.isPooled = settings.pooler !== 'none';
    this.parameters = parameters;
    // pg would take these from PGOPTIONS and PGREPLICATION.
    Object.assign(this.connectionParameters, { options: config.options, replication: undefined });
    // Waiting statements get the error by themselves. An error without a listener ends the process.
    this.on('error', () => {});
    // Without a password, pg leaves the connection open, and PostgreSQL for the minute of `authentication_timeout`.
    this.connection.on('error', (fault) => {
      const isBeforeTls = config.ssl !== false && !('encrypted' in this.connection.stream);
      this.#fault ??= withCode(fault, isBeforeTls ? 'tls' : 'authentication');
      this.connection.stream.destroy();
    });
    this.connection.on('errorMessage', (fault) => {
      if (endsSession(fault)) this.#fault = fault;
    });
    const { attachListeners } = this.connection;
    this.connection.attachListeners = (stream) => {
      attachListeners.call(this.connection, stream);
      takeRows(stream, this);
    };
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.#reported.set(parameterName, parameterValue);
      if (parameterName.endsWith('_encoding') && parameterValue !== 'UTF8')
        this.#endForEncoding(parameterValue);
    });
  }

  /** Connects and authenticates within the connection time limit. The first statements have the same time again. */
  async openInTime(): Promise<void> {
    const late = Object.assign(new Error('timeout expired'), { code: 'ETIMEDOUT' });
    const timer = setTimeout(() => this.abandon(late), connectTimeLimitMs(this.#settings));
    try {
      await super.connect();
      timer.refresh();
      await this.#identify();
      // A pooler reports the state of its first connection. After a failover, this may be that of a former standby.
      if (this.acceptsWrites === false && (await this.askWhetherItAcceptsWrites())) this.#reported.clear();
    } catch (fault) {
      this.abandon();
      throw fault;
    } finally {
      clearTimeout(timer);
    }
  }

  /** As PostgreSQL 14 and later report at the start and at each change. Undefined for others, and behind some poolers. */
  get acceptsWrites(): boolean | undefined {
    const isStandby = this.#reported.get('in_hot_standby');
    const isReadOnly = this.#reported.get('default_transaction_read_only');
    if (isStandby === 'on' || isReadOnly === 'on') return false;
    return isStandby === undefined || isReadOnly === undefined ? undefined : true;
  }

  /** Closes the connection at once. Statements without a response fail, by the reason if it is an error. The log has it. */
  abandon(reason?: string | Error): void {
    this.#abandoned ??= { reason };
    this.connection.stream.destroy(reason instanceof Error ? reason : undefined);
  }

  /** Ends the session, and closes the connection if PostgreSQL does not do so soon. Many may wait for the end. */
  endInTime(): Promise<void> {
    if (!this.#ending) setTimeout(() => this.connection.stream.destroy(), MAX_CLOSING_MS).unref();
    this.#ending ??= this.end().catch(() => {});
    return this.#ending;
  }

  /** Why it was closed, or ended during a statement. Undefined if this is usual. */
  get endReason(): unknown {
    if (this.#abandoned) return this.#abandoned.reason;
    return this.awaitsResponse ? (this.#fault ?? 'the connection was closed during a statement') : undefined;
  }

  async askWhetherItAcceptsWrites(): Promise<boolean> {
    return (await this.show('transaction_read_only')) === 'off';
  }

  /** The value of a setting. If PostgreSQL does not respond within the connection time limit, the session is closed. */
  async show(setting: string): Promise<string> {
    const timer = setTimeout(() => this.abandon(), connectTimeLimitMs(this.#settings));
    const { rows } = await this.query(`show ${setting}`).finally(() => clearTimeout(timer));
    return String(rows[0]?.[setting]);
  }

  /** Asks over another session at the same host, which lasts for so many milliseconds at most. */
  async askAside<Answer>(maxMs: number, ask: (asking: PostgresClient) => Promise<Answer>): Promise<Answer> {
    const asking = new PostgresClient(this.#settings, this.server);
    const timer = setTimeout(() => asking.abandon(), maxMs);
    try {
      await asking.openInTime();
      return await ask(asking);
    } finally {
      clearTimeout(timer);
      asking.abandon();
    }
  }

  /** Whether a statement was sent whose response has not arrived. */
  get awaitsResponse(): boolean {
    return !this.readyForQuery;
  }

  onBytes(): void {
    this.heardAt = performance.now();
    this.seenRunningAt = Number.NEGATIVE_INFINITY;
  }

  /** Whether PostgreSQL responds within so many milliseconds, to a statement in progress or to one without rows. */
  async responds(milliseconds: number): Promise<boolean> {
    const begun = performance.now();
    if (!this.awaitsResponse) this.query('select where false').catch(() => {});
    const isDue = () => this.heardAt < begun && performance.now() - begun < milliseconds;
    while (this.connection.stream.writable && isDue()) await sleep(RESPONSE_POLL_MS);
    return this.heardAt >= begun;
  }

  /** No other encoding holds every value of the API. The message that the session begins is often in the same packet. */
  #endForEncoding(encoding: string): void {
    this.connection.removeAllListeners('readyForQuery');
    const reason = `the database has the encoding ${encoding}, and the service requires UTF8`;
    this.connection.stream.destroy(new Error(reason));
  }

  /** Nothing is concluded from a number of a pooler or a proxy, which is not that of PostgreSQL's process. */
  async #identify(): Promise<void> {
    if (!this.engine.hasOwnSessions) return;
    const { rows } = await this.query(IDENTITY);
    const [processId, serverStarted] = rows.map(({ column1 }) => column1);
    if (Number(processId) === this.processID) this.serverStarted = serverStarted;
  }
}

/** The time is a number, because its text would depend on settings of the session. */
const IDENTITY = `values (pg_backend_pid()::bigint),
  ((extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint)`;
