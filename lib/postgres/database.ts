import type { EventLog } from '../observability/event-log.ts';
import type { Tracing } from '../observability/telemetry.ts';
import type { Settings } from '../settings/settings.ts';
import { createExecutors } from './executors.ts';
import type { Executors, SenderOptions } from './retrying-sender.ts';
import { PostgresHosts } from './sessions/postgres-hosts.ts';
import { isLeft } from './sessions/session.ts';
import { SessionPool } from './sessions/session-pool.ts';
import { Statements } from './statements.ts';

type Options = Pick<SenderOptions, 'latestMigration'> & {
  readonly log?: EventLog;
  readonly tracing?: Tracing | undefined;
};

/** The kinds of statements that share sessions, and the kind that has them to itself. */
const KINDS = { shared: ['batched-read', 'batched-write', 'list'], 'own-session': ['own-session'] } as const;

export class Database {
  readonly statements: Statements;
  readonly executors: Executors;
  readonly hosts: PostgresHosts;
  readonly #pool: SessionPool;

  /** Opens no session. The first statement does. */
  constructor(settings: Settings['postgres'], { log, tracing, latestMigration }: Options = {}) {
    this.hosts = new PostgresHosts(settings, log);
    this.#pool = new SessionPool(settings, this.hosts);
    this.executors = createExecutors(settings, this.#pool);
    const spans = tracing?.createDatabaseSpans(settings.database, () => this.hosts.inUse);
    const { executors, hosts } = this;
    const onReadOnly = () => hosts.onReadOnly();
    this.statements = new Statements(settings, { executors, onReadOnly, spans, latestMigration });
  }

  /**
   * Numbers of sessions, without that of the readiness check, and of statements that wait, also to be batched. `used` are
   * in use or being opened.
   */
  sessions(): { readonly idle: number; readonly used: number; readonly waitedFor: number } {
    const { sessions, opening } = this.#pool.without(this.executors.readiness);
    const idle = sessions.filter(({ length }) => length === 0).length;
    let waitedFor = 0;
    for (const { waitingCount } of new Set([...Object.values(this.executors), ...this.#pool.executors]))
      waitedFor += waitingCount;
    return { idle, used: sessions.length - idle + opening, waitedFor };
  }

  /**
   * Whether at least half of the maximum number of statements wait for a shared session, or for one of their own. Those of
   * the latter may wait for a lock.
   */
  isCrowded(sessions: keyof typeof KINDS): boolean {
    const limit = this.statements.maxWaiting / 2;
    return KINDS[sessions].some((kind) => this.executors[kind].waitingCount >= limit);
  }

  /** Whether PostgreSQL has responded to something else than the readiness check within so many milliseconds. */
  hasResponded(milliseconds: number): boolean {
    const since = Date.now() - milliseconds;
    const { sessions } = this.#pool.without(this.executors.readiness);
    return sessions.some(({ state, respondedAt }) => !isLeft(state) && respondedAt >= since);
  }

  cancel(): void {
    this.#pool.cancel();
  }

  /** Closes all sessions. Statements in progress are cancelled after this number of seconds. */
  async close(seconds: number): Promise<void> {
    const timer = setTimeout(() => this.cancel(), seconds * 1000);
    await this.#pool.close();
    clearTimeout(timer);
  }
}
