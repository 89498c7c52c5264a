import type { Pool } from 'pg';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../problem.ts';
import { lockTimeoutIn, withTimeLeft } from '../time-left.ts';
import { type Borrowed, borrowingFrom } from './borrowed.ts';
import type { Pipeline, StatementText } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { cancelled, noAnswer, noConnection, outOfTime, type Way } from './way.ts';

type Options = Omit<Parameters<typeof borrowingFrom>[1], 'areReturned'> & {
  /** How many may wait for a connection. */
  readonly mostWaiting: number;
  /** For how long a statement waits before it is sent, in milliseconds. */
  readonly poolTimeLimit: number;
};

/** A way for statements of which each has a connection for itself alone, so that it holds up nobody, whatever it waits for. */
export type ExclusiveConnections = Way & {
  /** As `send`; it waits for a lock for so many milliseconds at most. */
  sendWaiting(milliseconds: number, ...sent: Parameters<Way['send']>): ReturnType<Way['send']>;
};

const SET_LOCK_TIMEOUT = { sql: "select set_config('lock_timeout', $1, false)", name: 'set lock_timeout' };
const RESET_LOCK_TIMEOUT = { sql: 'reset lock_timeout', name: 'reset lock_timeout' };

/** Connections of this pool. */
export function exclusiveConnections(pool: Pool, options: Options): ExclusiveConnections {
  const borrow = borrowingFrom(pool, { ...options, areReturned: true });
  const busy = new ChurningSet<Borrowed>();
  const waiting = new ChurningSet<(reason: Error) => void>();
  const { mostWaiting, poolTimeLimit } = options;
  let isCancelled = false;

  /** A connection that comes too late is given back. */
  function borrowUntil(deadline: number): Promise<Borrowed> {
    return new Promise((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      const left = deadline - performance.now();
      if (left <= 0) return reject(outOfTime());
      const isLast = left <= poolTimeLimit;
      const timer = setTimeout(
        () => refuse(isLast ? outOfTime() : noConnection()),
        Math.min(left, poolTimeLimit),
      );
      const settle = () => {
        clearTimeout(timer);
        return waiting.delete(refuse);
      };
      waiting.add(refuse);
      borrow().then(
        (borrowed) => (settle() ? resolve(borrowed) : borrowed.release()),
        (reason) => settle() && reject(reason),
      );

      function refuse(reason: Error): void {
        settle();
        reject(reason);
      }
    });
  }

  async function sendBy<Rows>(deadline: number, sendOn: (borrowed: Borrowed, left: number) => Promise<Rows>) {
    if (waiting.size >= mostWaiting) throw unavailable('too many requests wait for a connection');
    const borrowed = await borrowUntil(deadline);
    busy.add(borrowed);
    try {
      return await sendOn(borrowed, Math.max(deadline - performance.now(), 1));
    } finally {
      busy.delete(borrowed);
      borrowed.release();
    }
  }

  return {
    send: (text, values, deadline) =>
      sendBy(deadline, (borrowed, left) => answerWithin(left, borrowed, text, withTimeLeft(values, left))),
    sendWaiting: (milliseconds, text, values, deadline) =>
      sendBy(deadline, (borrowed, left) => {
        const limit = Math.min(milliseconds, lockTimeoutIn(left));
        change(borrowed.pipeline, SET_LOCK_TIMEOUT, [String(limit)]);
        const answer = answerWithin(left, borrowed, text, values);
        change(borrowed.pipeline, RESET_LOCK_TIMEOUT);
        return answer;
      }),
    get waitingCount() {
      return waiting.size;
    },
    cancel() {
      isCancelled = true;
      for (const { pipeline } of busy) pipeline.abandon();
      for (const refuse of waiting) refuse(cancelled());
    },
  };
}

/** Changes the session, in one write with the statement behind it or before it; else the connection is of no more use. */
function change(pipeline: Pipeline, text: StatementText, values: readonly string[] = []): void {
  const reject = () => {
    pipeline.isBroken = true;
  };
  pipeline.send({ text, values, resolve() {}, reject });
}

/** PostgreSQL notices that the connection is gone, and stops the statement. */
async function answerWithin(
  milliseconds: number,
  { pipeline }: Borrowed,
  text: StatementText,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    pipeline.abandon();
  }, milliseconds);
  try {
    return await new Promise((resolve, reject) => pipeline.send({ text, values, resolve, reject }));
  } catch (fault) {
    throw isLate ? noAnswer() : fault;
  } finally {
    clearTimeout(timer);
  }
}
