import { createHash } from 'node:crypto';
import { unavailable } from '../../http/problem.ts';
import type { Settings } from '../../settings/settings.ts';
import { ResponseTimeout } from './faults.ts';
import type { Row } from './rows.ts';

/** 30 bits: two of a hundred statements have the same name with a chance of 5 in a million. Each use sends them. */
const NAME_CHARACTERS = 5;

/** A statement as it was written. There is one object for each. */
export type StatementText = {
  readonly sql: string;
  readonly name: string;
  /** Whether it writes nothing. */
  readonly isRead: boolean;
  /** Whether the result is in binary and its rows stay as they came: each is a `ReceivedRow`. */
  readonly isBinary?: boolean;
  /** The place of the key among its values, if a batch carries it out. Rows are handed back by it. */
  readonly keyAt?: number;
  /** Whether its waits for locks end before its deadline, so that PostgreSQL reports what it waited for. */
  readonly limitsLockWaits?: boolean;
};

/** The name on all sessions is a digest of the text, so that no session knows another statement by it, even behind a pooler. */
export function nameStatement(sql: string): Pick<StatementText, 'sql' | 'name'> {
  return { sql, name: createHash('sha256').update(sql).digest('base64url').slice(0, NAME_CHARACTERS) };
}

/** `onLate` is called if another session takes the place of that of the statement, which still waits for its response. */
export type SendOptions = {
  /** Maximum time of its wait for a lock, in milliseconds, if the executor has a depth of 1. */
  readonly maxLockWait?: number;
  readonly onLate?: () => void;
};

export type Executor = {
  /**
   * `deadline` is a time of `performance.now()`. @throws {Problem} service_unavailable_error if the statement was not sent,
   * or got no response, in time; otherwise the fault of PostgreSQL or of the session
   */
  send(
    text: StatementText,
    values: readonly unknown[],
    deadline: number,
    options?: SendOptions,
  ): Promise<readonly Row[]>;
  /** Number of statements that wait to be sent. */
  readonly waitingCount: number;
};

/** Maximum number of statements that wait for an executor. With more, the last ones would reach their time limit. */
export function maxWaitingStatements({ poolSize }: Pick<Settings['postgres'], 'poolSize'>): number {
  return poolSize * 32;
}

/** A statement that has no response yet. */
export class PendingStatement {
  readonly text: StatementText;
  readonly values: readonly unknown[];
  /** A time of `performance.now()`. */
  readonly deadline: number;
  readonly options: SendOptions | undefined;
  readonly queuedAt = performance.now();
  /** Only its deadline ends a statement that was sent. It is given up if its deadline passed without a response. */
  isSent = false;
  isGivenUp = false;
  readonly #settle = Promise.withResolvers<readonly Row[]>();
  readonly response = this.#settle.promise;
  #timer: NodeJS.Timeout | undefined;

  constructor(text: StatementText, values: readonly unknown[], deadline: number, options?: SendOptions) {
    this.options = options;
    this.text = text;
    this.values = values;
    this.deadline = deadline;
  }

  /** Rejects it at its deadline, or after so many seconds if it was not sent by then. Before, it calls `onExpiry`. */
  limitTime(poolTimeout: number, onExpiry: () => void): void {
    const waitUntil = Math.min(this.deadline, this.queuedAt + poolTimeout * 1000);
    const left = (this.isSent ? this.deadline : waitUntil) - performance.now();
    const expire = () => {
      const isLate = performance.now() >= this.deadline;
      if (this.isSent && !isLate) return this.limitTime(poolTimeout, onExpiry);
      this.isGivenUp = this.isSent;
      onExpiry();
      if (this.isSent) this.reject(refusals.noResponse());
      else this.reject(isLate ? refusals.timeLimitReached() : refusals.noFreeSession());
    };
    this.#timer = setTimeout(expire, Math.max(Math.ceil(left), 0) + 1);
  }

  resolve(rows: readonly Row[]): void {
    clearTimeout(this.#timer);
    this.#settle.resolve(rows);
  }

  reject(fault: unknown): void {
    clearTimeout(this.#timer);
    this.#settle.reject(fault);
  }
}

const TIME_LIMIT_REACHED = "the request's time limit is reached";

/** Why a statement is refused. */
export const refusals = {
  timeLimitReached: () => unavailable(TIME_LIMIT_REACHED, new Error('the statement was not sent')),
  noResponse: () =>
    unavailable(
      `PostgreSQL cannot answer: ${TIME_LIMIT_REACHED}`,
      new ResponseTimeout('no response within the time limit'),
    ),
  /** The statement was not sent within SVC_POSTGRES_POOL_TIMEOUT. */
  noFreeSession: () =>
    unavailable(
      'no connection became free in time',
      new Error('all connections were in use or being opened'),
    ),
  queueFull: () => unavailable('too many requests wait for a connection'),
  cancelledByShutdown: () => unavailable('the statement was cancelled by the shutdown'),
  sessionsClosed: () => unavailable('the connections are closed because the service is shutting down'),
};
