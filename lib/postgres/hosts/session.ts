import type { ClientConfig } from 'pg';
import type { Settings } from '../../settings/settings.ts';
import { engineProfile } from '../engine-profile.ts';
import { Client } from './client.ts';
import { abandon } from './connection.ts';

type Postgres = Settings['postgres'];

/** Which PostgreSQL a session is at, by the time of its start, and the number of the session there. */
export type SessionIdentity = { readonly serverStarted: string; readonly processId: number };

/**
 * How long opening a session may take, in milliseconds: a connection, what PostgreSQL asks for and its first answer.
 * A host that needs longer counts as out of reach.
 */
export function connectTimeLimit({ poolTimeout }: Pick<Postgres, 'poolTimeout'>): number {
  return Math.min(Math.max(poolTimeout, 1), 5) * 1000;
}

/** A session whose server reports whether it accepts writes, and that can be identified and checked. */
export class Session extends Client {
  readonly #reported = new Map<string, string>();
  readonly #postgres: Postgres;
  /** Undefined where another process's number would say nothing: see `identify`. */
  identity: SessionIdentity | undefined;

  constructor(config: ClientConfig, postgres: Postgres) {
    super(config);
    this.#postgres = postgres;
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.#reported.set(parameterName, parameterValue);
    });
  }

  /** Connects within so many milliseconds; what is asked then has as long. */
  async openInTime(milliseconds = connectTimeLimit(this.#postgres)): Promise<void> {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      abandon(this);
    }, milliseconds);
    try {
      await super.connect();
      timer.refresh();
      await this.#identify();
      // A pooler reports what was so when it first connected: after a failover, a former standby.
      if (this.acceptsWrites === false && (await this.askWhetherItAcceptsWrites())) this.#reported.clear();
    } catch (fault) {
      abandon(this);
      throw isLate ? new Error('timeout expired', { cause: fault }) : fault;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What PostgreSQL 14 and later report at the start and at each change; undefined for others, and behind some poolers. */
  get acceptsWrites(): boolean | undefined {
    const isStandby = this.#reported.get('in_hot_standby');
    const isReadOnly = this.#reported.get('default_transaction_read_only');
    if (isStandby === 'on' || isReadOnly === 'on') return false;
    return isStandby === undefined || isReadOnly === undefined ? undefined : true;
  }

  /** Closes the connection at once. Statements without a response fail, whatever the server does. */
  abandon(): void {
    this.connection.stream.destroy();
  }

  async askWhetherItAcceptsWrites(): Promise<boolean> {
    const { rows } = await this.query('show transaction_read_only');
    return rows[0]?.transaction_read_only === 'off';
  }

  /** Whether a statement was sent whose answer has not come. */
  get awaitsAnswer(): boolean {
    return !(this as unknown as { readonly readyForQuery: boolean }).readyForQuery;
  }

  /** Calls back whenever PostgreSQL reports something about it. */
  onWritesChange(listener: () => void): void {
    this.connection.on('parameterStatus', ({ parameterName }) => {
      if (/^(in_hot_standby|default_transaction_read_only)$/.test(parameterName)) listener();
    });
  }

  /**
   * Whether PostgreSQL responds within so many milliseconds, to a statement in progress or to an empty one. (Without its
   * Sync, a pooler would keep one of its sessions for this client.)
   */
  responds(milliseconds: number): Promise<boolean> {
    const { stream } = this.connection;
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(false), milliseconds);
      const onData = () => settle(true);
      const onClose = () => settle(false);
      const settle = (responds: boolean) => {
        clearTimeout(timer);
        stream.off('data', onData).off('close', onClose);
        resolve(responds);
      };
      stream.on('data', onData).on('close', onClose);
      if (!stream.writable) settle(false);
      else if (!this.awaitsAnswer) this.query('').catch(() => {});
    });
  }

  /**
   * Poolers and proxies may give a session a number that is not that of PostgreSQL's process. Then nothing is concluded
   * from the numbers that PostgreSQL shows to another session.
   */
  async #identify(): Promise<void> {
    if (!engineProfile(this.#postgres).showsSessions || this.#postgres.pooler !== 'none') return;
    const { rows } = await this.query(IDENTITY);
    const [processId, serverStarted] = rows.map(({ column1 }) => column1);
    const given = (this as unknown as { readonly processID: number }).processID;
    if (Number(processId) === given) this.identity = { processId: given, serverStarted };
  }
}

/** The time as a number: its text would depend on settings of the session. */
const IDENTITY = `values (pg_backend_pid()::bigint),
  ((extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint)`;
