import { unavailable } from '../../http/problem.ts';
import { ResponseTimeout } from './faults.ts';
import type { Row } from './rows.ts';
import type { StatementText } from './statement-text.ts';

/** A statement to send, with its values. */
export type StatementRequest = {
  readonly text: StatementText;
  readonly values: readonly unknown[];
  /** A time of `performance.now()`. */
  readonly deadline: number;
  /** Maximum time of its wait for a lock, in milliseconds, if it has a session to itself. */
  readonly maxLockWait?: number;
  /** Is called if another session takes the place of that of the statement, which still waits for its response. */
  readonly onLate?: (() => void) | undefined;
};

export type Executor = {
  /**
   * @throws {Problem} service_unavailable_error if the statement was not sent, or got no response, in time; otherwise the
   * fault of PostgreSQL or of the session
   */
  send(request: StatementRequest): Promise<readonly Row[]>;
  /** Number of statements that wait to be sent. */
  readonly waitingCount: number;
};

export class PendingStatement {
  readonly request: StatementRequest;
  readonly queuedAt = performance.now();
  /** Only its deadline ends a statement that was sent. It is given up if its deadline passed without a response. */
  isSent = false;
  isGivenUp = false;
  sentOver: { giveUp(statement: PendingStatement): void } | undefined;
  readonly #settle = Promise.withResolvers<readonly Row[]>();
  readonly response = this.#settle.promise;
  #timer: NodeJS.Timeout | undefined;

  constructor(request: StatementRequest) {
    this.request = request;
  }

  /** Rejects it at its deadline, or after so many seconds if it was not sent by then. Before, it calls `onExpiry`. */
  limitTime(poolTimeout: number, onExpiry: () => void): void {
    const { deadline } = this.request;
    const waitUntil = Math.min(deadline, this.queuedAt + poolTimeout * 1000);
    const left = (this.isSent ? deadline : waitUntil) - performance.now();
    const expire = () => {
      const isLate = performance.now() >= deadline;
      if (this.isSent && !isLate) return this.limitTime(poolTimeout, onExpiry);
      this.isGivenUp = this.isSent;
      onExpiry();
      this.sentOver?.giveUp(this);
      if (this.isSent) this.reject(noResponse());
      else this.reject(isLate ? timeLimitReached() : noFreeSession());
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

export function timeLimitReached(): Error {
  return unavailable(TIME_LIMIT_REACHED, new Error('the statement was not sent'));
}

function noResponse(): Error {
  const fault = new ResponseTimeout('no response within the time limit');
  return unavailable(`PostgreSQL cannot answer: ${TIME_LIMIT_REACHED}`, fault);
}

/** The statement was not sent within SVC_POSTGRES_POOL_TIMEOUT. */
export function noFreeSession(): Error {
  const fault = new Error('all connections were in use or being opened');
  return unavailable('no connection became free in time', fault);
}
