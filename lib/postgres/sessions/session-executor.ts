import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../http/problem.ts';
import {
  type Executor,
  noFreeSession,
  PendingStatement,
  type StatementRequest,
  timeLimitReached,
} from './pending-statement.ts';
import type { Row } from './rows.ts';
import type { Session } from './session.ts';

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** In a shared session. A statement that waits longer moves to `LockWaiters`, because others wait behind it. */
const SHARED_LOCK_TIMEOUT_MS = '20';

/** The pool, which chooses the session of each statement. */
type SessionSource = {
  readonly settings: { readonly poolTimeout: number };
  /** Why no further statement is sent. Undefined before the shutdown. */
  readonly refusalReason: string | undefined;
  take(executor: SessionExecutor, isRead: boolean): Session | undefined;
  refusesWrites(executor: SessionExecutor): boolean;
};

/** Queues statements, and sends them over sessions of the pool: see "Sessions" in README.md. */
export class SessionExecutor implements Executor {
  readonly maxSessions: number;
  /** Maximum number of statements in progress in a session. */
  readonly depth: number;
  /** In each session that is opened for it. */
  readonly lockTimeout: string | undefined;
  readonly sessions = new Set<Session>();
  /** Number of sessions that are being opened. */
  opening = 0;
  readonly #pool: SessionSource;
  readonly #queue = new ChurningSet<PendingStatement>();

  constructor(pool: SessionSource, maxSessions: number, depth: number) {
    this.#pool = pool;
    this.maxSessions = maxSessions;
    this.depth = depth;
    this.lockTimeout = depth > 1 ? SHARED_LOCK_TIMEOUT_MS : undefined;
  }

  send(request: StatementRequest): Promise<readonly Row[]> {
    const { refusalReason } = this.#pool;
    if (refusalReason) return Promise.reject(unavailable(refusalReason));
    if (request.deadline <= performance.now()) return Promise.reject(timeLimitReached());
    const statement = new PendingStatement(request);
    this.#queue.add(statement);
    this.sendQueued();
    if (!request.text.isRead && !statement.isSent && this.#pool.refusesWrites(this)) {
      this.#queue.delete(statement);
      return Promise.reject(noFreeSession());
    }
    statement.limitTime(this.#pool.settings.poolTimeout, () => this.#queue.delete(statement));
    return statement.response;
  }

  get waitingCount(): number {
    return this.#queue.size;
  }

  sendQueued(): void {
    let isWriteWaiting = false;
    for (const statement of this.#queue) {
      const { isRead } = statement.request.text;
      const session = isWriteWaiting && !isRead ? undefined : this.#pool.take(this, isRead);
      if (session) this.#sendOver(session, statement);
      else if (isRead) return;
      else isWriteWaiting = true;
    }
  }

  #sendOver(session: Session, statement: PendingStatement): void {
    this.#queue.delete(statement);
    statement.isSent = true;
    statement.sentOver = session;
    session.usedBy = this;
    const limit = findLockTimeout(statement.request) ?? this.lockTimeout;
    try {
      session.send(statement, limit === session.parameters.lock_timeout ? undefined : (limit ?? '0'));
    } catch (fault) {
      // A defect of one statement. Others of the queue may be sent after a response, where a throw would end the process.
      statement.reject(fault);
    }
  }

  queueAgain(statement: PendingStatement): void {
    this.#queue.add(statement);
  }

  /** Rejects the statements that wait since this time or longer (`performance.now()`). */
  rejectQueued(since: number, fault: unknown): void {
    for (const statement of this.#queue) {
      if (statement.queuedAt > since) continue;
      this.#queue.delete(statement);
      statement.reject(fault);
    }
  }
}

/** The limit of the waits for locks of a statement that has a session to itself, in milliseconds from now. */
function findLockTimeout({ deadline, text, maxLockWait }: StatementRequest): string | undefined {
  if (maxLockWait === undefined && !text.limitsLockWaits) return undefined;
  const left = deadline - performance.now() - LOCK_GRACE_MS;
  return String(Math.max(Math.floor(Math.min(left, maxLockWait ?? left)), 1));
}
