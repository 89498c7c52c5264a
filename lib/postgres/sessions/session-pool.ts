import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../http/problem.ts';
import { readMessage } from '../../observability/redaction.ts';
import type { Settings } from '../../settings/settings.ts';
import { chooseSession, isUsable } from './choose-session.ts';
import type { PendingStatement } from './pending-statement.ts';
import { HostChanged, type PostgresHosts } from './postgres-hosts.ts';
import { isLeft, type Session, type SessionListener, type SessionState } from './session.ts';
import { SESSION } from './session-config.ts';
import { SessionExecutor } from './session-executor.ts';

/** While AWS Lambda freezes the process no timer runs, and the connection of an idle session may be lost. */
const MAX_IDLE_MS = 60_000;

/** An older session is replaced, so that sessions spread over new servers behind a load balancer. */
const MAX_AGE_MS = 1_800_000;

const UPKEEP_MS = 250;
const CLOSING_POLL_MS = 10;

const CLOSED = 'the connections are closed because the service is shutting down';
const CANCELLED = 'the statement was cancelled by the shutdown';

/**
 * The sessions of the service for its statements.
 *
 *     opening ──► idle ◄─statement, response─► busy ◄─given up, late response─► stuck
 *                  └──────────────┬─────────────┴──────────────────┬──────────────┘
 *             age, fault, shutdown, other host       PostgreSQL has not begun the write
 *                                 ▼                                ▼
 *                              leaving                           late
 *                                 └──────── connection closed ─────┴──► closed
 *
 * `leaving` and `late` take no further statement, and end after those in progress. A session counts until it is closed, except
 * a late one, which another replaces. All states share one list in the order of opening: to move a session from list to list
 * at each statement costs more than to look at ten states.
 */
export class SessionPool implements SessionListener {
  readonly hosts: PostgresHosts;
  readonly settings: Settings['postgres'];
  /** In the order in which a session that becomes free is offered to them. */
  readonly executors = new Set<SessionExecutor>();
  readonly #sessions = new Set<Session>();
  /** Why no further statement is sent. Undefined before the shutdown. */
  refusalReason: string | undefined;

  constructor(settings: Settings['postgres'], hosts: PostgresHosts) {
    this.settings = settings;
    this.hosts = hosts;
    hosts.onOpenFailure = () => this.#sendNext();
  }

  createExecutor(maxSessions: number, depth: number): SessionExecutor {
    const executor = new SessionExecutor(this, maxSessions, depth);
    this.executors.add(executor);
    return executor;
  }

  /** The only function that changes the state of a session. */
  move(session: Session, state: SessionState): void {
    const isEnd = state === 'closed' || state === 'late';
    if (session.state === 'closed' || (isLeft(session.state) && !isEnd)) return;
    session.state = state;
    if (state !== 'closed') return;
    this.#sessions.delete(session);
    for (const { sessions } of this.executors) sessions.delete(session);
    this.#sendNext();
  }

  /** The sessions of all executors but this one, and the number of sessions that are being opened for them. */
  without(excluded: unknown): { readonly sessions: readonly Session[]; readonly opening: number } {
    const executors = [...this.executors].filter((executor) => executor !== excluded);
    return {
      sessions: executors.flatMap(({ sessions }) => [...sessions]),
      opening: executors.reduce((sum, { opening }) => sum + opening, 0),
    };
  }

  /** The session for a statement of this executor. Undefined if the statement must wait. */
  take(executor: SessionExecutor, isRead: boolean): Session | undefined {
    const choice = this.#choose(executor, isRead);
    const session = typeof choice === 'string' ? undefined : choice;
    // `SessionOpening` limits attempts while they fail.
    if (session?.length !== 0) this.#openAnother(executor);
    return session && this.#closeIfUnused(session) ? this.take(executor, isRead) : session;
  }

  /** Whether no wait of the executor's writes helps. */
  refusesWrites(executor: SessionExecutor): boolean {
    return this.#choose(executor, false) === 'refuse';
  }

  #choose(executor: SessionExecutor, isRead: boolean): ReturnType<typeof chooseSession<Session>> {
    const isFull = this.hosts.isFull;
    return chooseSession(isRead, executor, {
      own: executor.sessions,
      all: this.#sessions,
      depth: executor.depth,
      isMissing: this.#missing(executor) > 0,
      isFull,
      isAnotherWaiting: isFull && [...this.executors].some((one) => one !== executor && one.waitingCount > 0),
    });
  }

  /** Number of further sessions of an executor. Those at other hosts, and late ones, do not count. */
  #missing({ maxSessions, sessions }: SessionExecutor): number {
    let missing = maxSessions;
    for (const { server, state } of sessions)
      if (server === this.hosts.inUse && state !== 'late') missing -= 1;
    return missing;
  }

  /** Opens a session for each statement that waits, up to the maximum. */
  #openAnother(executor: SessionExecutor): void {
    const isWanted = executor.opening === 0 || executor.opening < executor.waitingCount;
    if (isWanted && !this.refusalReason && executor.opening < this.#missing(executor))
      void this.#open(executor);
  }

  async #open(executor: SessionExecutor): Promise<void> {
    const begun = performance.now();
    executor.opening += 1;
    const parameters = {
      ...SESSION,
      statement_timeout: String(Math.trunc(this.settings.statementTimeout * 1000)),
      ...(executor.lockTimeout && { lock_timeout: executor.lockTimeout }),
    };
    try {
      this.#add(await this.hosts.openSession(parameters), executor);
    } catch (fault) {
      // Statements wait for other sessions, if there are any. Otherwise those that waited for this one fail.
      const mayWait = fault instanceof HostChanged || [...this.#sessions].some(isUsable);
      if (!mayWait) executor.rejectQueued(begun, unavailable(`no connection: ${readMessage(fault)}`, fault));
    } finally {
      executor.opening -= 1;
    }
    this.#sendNext();
  }

  #add(session: Session, executor: SessionExecutor): void {
    this.#sessions.add(session);
    executor.sessions.add(session);
    session.usedBy = executor;
    session.join(this);
    const upkeep = setInterval(() => this.#closeIfUnused(session), UPKEEP_MS).unref();
    session.once('end', () => clearInterval(upkeep));
    if (this.refusalReason) this.#close(session);
  }

  /** The session may take a waiting statement, or may no longer be needed. */
  onResponse(session: Session): void {
    const { state, length, usedBy } = session;
    if (length === 0 && (isLeft(state) || this.refusalReason)) this.#close(session);
    // The executor of the session comes last, so that a few sessions serve all.
    if (this.hosts.isFull && this.executors.delete(usedBy as SessionExecutor))
      this.executors.add(usedBy as SessionExecutor);
    this.#sendNext();
  }

  #sendNext(): void {
    for (const executor of this.executors) if (executor.waitingCount > 0) executor.sendQueued();
  }

  /** The session ended before these statements were sent. They are sent over another one, within their time limits. */
  onNotSent(ended: Session, statements: readonly PendingStatement[]): void {
    // Sessions that were idle for as long may have ended, too.
    if (ended.length === 0)
      for (const session of this.#sessions)
        if (session.length === 0 && session.respondedAt <= ended.respondedAt) this.#close(session);
    for (const statement of statements) {
      statement.isSent = false;
      if (this.refusalReason) statement.reject(unavailable(this.refusalReason));
      else if (!statement.isGivenUp) (ended.usedBy as SessionExecutor).queueAgain(statement);
    }
  }

  /** Closes an idle session that was idle for too long, or is too old, unless PostgreSQL gives no other one. */
  #closeIfUnused(session: Session): boolean {
    if (session.length > 0 || this.hosts.isFull) return false;
    const now = Date.now();
    if (now - session.respondedAt <= MAX_IDLE_MS && now - session.openedAt <= MAX_AGE_MS) return false;
    this.#close(session);
    return true;
  }

  /** A session counts until PostgreSQL has ended it. */
  #close(session: Session): void {
    this.move(session, 'leaving');
    void session.endInTime();
  }

  /** Cancels all statements, and refuses later ones. */
  cancel(): void {
    this.refusalReason = CANCELLED;
    for (const executor of this.executors) executor.rejectQueued(performance.now(), unavailable(CANCELLED));
    for (const session of this.#sessions) session.abandon();
  }

  /** Refuses further statements. Resolves when those in progress have responses and all sessions are closed. */
  async close(): Promise<void> {
    this.refusalReason ??= CLOSED;
    for (const session of this.#sessions)
      if (session.length === 0 || session.state === 'stuck') this.#close(session);
    const isOpen = () => this.#sessions.size > 0 || [...this.executors].some(({ opening }) => opening > 0);
    while (this.refusalReason !== CANCELLED && isOpen()) await sleep(CLOSING_POLL_MS);
  }
}
