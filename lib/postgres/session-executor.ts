import { ChurningSet } from '../churning-set.ts';
import {
  type Executor,
  PendingStatement,
  type PoolUser,
  type Row,
  refusals,
  type SendOptions,
  type Session,
  type SessionPool,
  type StatementText,
} from './sessions/index.ts';

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** In a shared session. A statement that waits longer moves to `LockWaiters`, because others wait behind it. */
const SHARED_LOCK_TIMEOUT_MS = '20';

class QueuedStatement extends PendingStatement {
  sentOver: Session | undefined;
}

/** Queues statements, and sends them over sessions of the pool: see "Sessions" in README.md. */
export class SessionExecutor implements Executor, PoolUser {
  readonly maxSessions: number;
  readonly depth: number;
  readonly lockTimeout: string | undefined;
  readonly sessions = new Set<Session>();
  opening = 0;
  readonly #pool: SessionPool;
  readonly #poolTimeout: number;
  readonly #queue = new ChurningSet<QueuedStatement>();

  constructor(pool: SessionPool, poolTimeout: number, maxSessions: number, depth: number) {
    this.#pool = pool;
    this.#poolTimeout = poolTimeout;
    this.maxSessions = maxSessions;
    this.depth = depth;
    this.lockTimeout = depth > 1 ? SHARED_LOCK_TIMEOUT_MS : undefined;
    pool.users.add(this);
  }

  send(
    text: StatementText,
    values: readonly unknown[],
    deadline: number,
    options?: SendOptions,
  ): Promise<readonly Row[]> {
    if (this.#pool.refuse) return Promise.reject(this.#pool.refuse());
    if (deadline <= performance.now()) return Promise.reject(refusals.timeLimitReached());
    const statement = new QueuedStatement(text, values, deadline, options);
    this.#queue.add(statement);
    this.sendQueued();
    if (!text.isRead && !statement.isSent && this.#pool.refusesWrites(this)) {
      this.#queue.delete(statement);
      return Promise.reject(refusals.noFreeSession());
    }
    statement.limitTime(this.#poolTimeout, () => {
      this.#queue.delete(statement);
      statement.sentOver?.giveUp(statement);
    });
    return statement.response;
  }

  get waitingCount(): number {
    return this.#queue.size;
  }

  sendQueued(): void {
    let isWriteWaiting = false;
    for (const statement of this.#queue) {
      const { isRead } = statement.text;
      const session = isWriteWaiting && !isRead ? undefined : this.#pool.take(this, isRead);
      if (session) this.#sendOver(session, statement);
      else if (isRead) return;
      else isWriteWaiting = true;
    }
  }

  #sendOver(session: Session, statement: QueuedStatement): void {
    this.#queue.delete(statement);
    statement.isSent = true;
    statement.sentOver = session;
    session.usedBy = this;
    const limit = findLockTimeout(statement) ?? this.lockTimeout;
    try {
      session.send(statement, limit === session.lockTimeout ? undefined : (limit ?? '0'));
    } catch (fault) {
      // A defect of one statement. Others of the queue may be sent after a response, where a throw would end the process.
      statement.reject(fault);
    }
  }

  queueAgain(statement: PendingStatement): void {
    this.#queue.add(statement as QueuedStatement);
  }

  rejectQueued(since: number, fault: unknown): void {
    for (const statement of this.#queue) {
      if (statement.queuedAt > since) continue;
      this.#queue.delete(statement);
      statement.reject(fault);
    }
  }
}

/** The limit of the waits for locks of a statement that has a session to itself, in milliseconds from now. */
function findLockTimeout({ deadline, text, options }: QueuedStatement): string | undefined {
  const maxLockWait = options?.maxLockWait;
  if (maxLockWait === undefined && !text.limitsLockWaits) return undefined;
  const left = deadline - performance.now() - LOCK_GRACE_MS;
  return String(Math.max(Math.floor(Math.min(left, maxLockWait ?? left)), 1));
}
