import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../http/problem.ts';
import { readMessage } from '../../observability/redaction.ts';
import type { Settings } from '../../settings/settings.ts';
import { chooseSession, isUsable } from './choose-session.ts';
import { type PendingStatement, refusals } from './pending-statement.ts';
import type { PostgresHosts } from './postgres-hosts.ts';
import { HostChanged, isLeft, type Session, type SessionListener, type SessionState } from './session.ts';
import { SESSION } from './session-config.ts';

/** While AWS Lambda freezes the process no timer runs, and the connection of an idle session may be lost. */
const MAX_IDLE_MS = 60_000;

/** An older session is replaced, so that sessions spread over new servers behind a load balancer. */
const MAX_AGE_MS = 1_800_000;

const UPKEEP_MS = 250;
const CLOSING_POLL_MS = 10;

/** An executor, and the sessions that are opened for its statements. */
export type PoolUser = {
  readonly maxSessions: number;
  /** Maximum number of statements in progress in a session. */
  readonly depth: number;
  /** In each of its sessions. */
  readonly lockTimeout: string | undefined;
  readonly sessions: Set<Session>;
  /** Number of sessions that are being opened. */
  opening: number;
  readonly waitingCount: number;
  sendQueued(): void;
  queueAgain(statement: PendingStatement): void;
  /** Rejects the statements that wait since this time or longer (`performance.now()`). */
  rejectQueued(since: number, fault: unknown): void;
};

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
  readonly #settings: Settings['postgres'];
  /** In the order in which a session that becomes free is offered to them. */
  readonly users = new Set<PoolUser>();
  readonly #sessions = new Set<Session>();
  /** Creates the refusal of further statements during the shutdown. */
  refuse: (() => Error) | undefined;

  constructor(settings: Settings['postgres'], hosts: PostgresHosts) {
    this.#settings = settings;
    this.hosts = hosts;
    hosts.onRefusal = () => this.#sendNext();
  }

  /** The only function that changes the state of a session. */
  move(session: Session, state: SessionState): void {
    const isEnd = state === 'closed' || state === 'late';
    if (session.state === 'closed' || (isLeft(session.state) && !isEnd)) return;
    session.state = state;
    if (state !== 'closed') return;
    this.#sessions.delete(session);
    for (const { sessions } of this.users) sessions.delete(session);
    this.#sendNext();
  }

  /** Whether a session of another user has responded within so many milliseconds. */
  hasResponded(milliseconds: number, other: unknown): boolean {
    const since = Date.now() - milliseconds;
    const sessions = [...this.users].flatMap((user) => (user === other ? [] : [...user.sessions]));
    return sessions.some(({ state, respondedAt }) => !isLeft(state) && respondedAt >= since);
  }

  /** Numbers of sessions, apart from those of this user. `used` are in use or being opened. */
  countWithout(other: unknown): { readonly idle: number; readonly used: number } {
    const users = [...this.users].filter((user) => user !== other);
    const sessions = users.flatMap((user) => [...user.sessions]);
    const idle = sessions.filter(({ length }) => length === 0).length;
    return { idle, used: sessions.length - idle + users.reduce((sum, { opening }) => sum + opening, 0) };
  }

  /** The session for a statement of this user. Undefined if the statement must wait. */
  take(user: PoolUser, isRead: boolean): Session | undefined {
    const choice = this.#choose(user, isRead);
    const session = typeof choice === 'string' ? undefined : choice;
    // `SessionAttempts` limits attempts while they fail.
    if (session?.length !== 0) this.#openAnother(user);
    return session && this.#closeIfUnused(session) ? this.take(user, isRead) : session;
  }

  /** Whether no wait of the user's writes helps. */
  refusesWrites(user: PoolUser): boolean {
    return this.#choose(user, false) === 'refuse';
  }

  #choose(user: PoolUser, isRead: boolean): ReturnType<typeof chooseSession<Session>> {
    const isFull = this.hosts.refusesSessions;
    return chooseSession(isRead, user, {
      own: user.sessions,
      all: this.#sessions,
      depth: user.depth,
      isMissing: user.sessions.size < user.maxSessions || this.#missing(user) > 0,
      isFull,
      isAnotherWaiting: isFull && [...this.users].some((one) => one !== user && one.waitingCount > 0),
    });
  }

  /** Number of further sessions of a user. Those at other hosts, and late ones, do not count. */
  #missing({ maxSessions, sessions }: PoolUser): number {
    let missing = maxSessions;
    for (const { server, state } of sessions)
      if (server === this.hosts.inUse && state !== 'late') missing -= 1;
    return missing;
  }

  /** Opens a session for each statement that waits, up to the maximum. */
  #openAnother(user: PoolUser): void {
    const isWanted = user.opening === 0 || user.opening < user.waitingCount;
    if (isWanted && !this.refuse && user.opening < this.#missing(user)) void this.#open(user);
  }

  async #open(user: PoolUser): Promise<void> {
    const begun = performance.now();
    user.opening += 1;
    const parameters = {
      ...SESSION,
      statement_timeout: String(Math.trunc(this.#settings.statementTimeout * 1000)),
      ...(user.lockTimeout && { lock_timeout: user.lockTimeout }),
    };
    try {
      this.#add(await this.hosts.openSession(parameters), user);
    } catch (fault) {
      this.#onRefusal(user, begun, fault);
    } finally {
      user.opening -= 1;
    }
    this.#sendNext();
  }

  #add(session: Session, user: PoolUser): void {
    this.#sessions.add(session);
    user.sessions.add(session);
    session.usedBy = user;
    session.join(this);
    const upkeep = setInterval(() => this.#closeIfUnused(session), UPKEEP_MS).unref();
    session.once('end', () => clearInterval(upkeep));
    if (this.refuse) this.#close(session);
  }

  /** If there are other sessions, statements wait for them. Otherwise the statements that waited for this one fail. */
  #onRefusal(user: PoolUser, begun: number, fault: unknown): void {
    if (fault instanceof HostChanged || [...this.#sessions].some(isUsable)) return;
    user.rejectQueued(begun, unavailable(`no connection: ${readMessage(fault)}`, fault));
  }

  /** The session may take a waiting statement, or may no longer be needed. */
  onResponse(session: Session): void {
    const { state, length, usedBy } = session;
    if (length === 0 && (isLeft(state) || this.refuse)) this.#close(session);
    // The user of the session comes last, so that a few sessions serve all.
    if (this.hosts.refusesSessions && this.users.delete(usedBy as PoolUser))
      this.users.add(usedBy as PoolUser);
    this.#sendNext();
  }

  #sendNext(): void {
    for (const user of this.users) if (user.waitingCount > 0) user.sendQueued();
  }

  /** The session ended before these statements were sent. They are sent over another one, within their time limits. */
  onNotSent(ended: Session, statements: readonly PendingStatement[]): void {
    // Sessions that were idle for as long may have ended, too.
    if (ended.length === 0)
      for (const session of this.#sessions)
        if (session.length === 0 && session.respondedAt <= ended.respondedAt) this.#close(session);
    for (const statement of statements) {
      statement.isSent = false;
      if (this.refuse) statement.reject(this.refuse());
      else if (!statement.isGivenUp) (ended.usedBy as PoolUser).queueAgain(statement);
    }
  }

  /** Closes an idle session that was idle for too long, or is too old, unless PostgreSQL refuses another one. */
  #closeIfUnused(session: Session): boolean {
    if (session.length > 0 || this.hosts.refusesSessions) return false;
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
    this.refuse = refusals.cancelledByShutdown;
    for (const user of this.users) user.rejectQueued(performance.now(), this.refuse());
    for (const session of this.#sessions) session.abandon();
  }

  /** Refuses further statements. Resolves when those in progress have responses and all sessions are closed. */
  async close(): Promise<void> {
    this.refuse ??= refusals.sessionsClosed;
    for (const session of this.#sessions)
      if (session.length === 0 || session.state === 'stuck') this.#close(session);
    const isOpen = () => this.#sessions.size > 0 || [...this.users].some(({ opening }) => opening > 0);
    while (this.refuse !== refusals.cancelledByShutdown && isOpen()) await sleep(CLOSING_POLL_MS);
  }
}
