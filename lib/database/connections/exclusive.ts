import type { Pool } from 'pg';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../problem.ts';
import { withTimeLeft } from '../time-left.ts';
import { type Borrowed, borrowingFrom } from './borrowed.ts';
import type { StatementText } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { cancelled, outOfTime, type Way } from './way.ts';

type Options = {
  /** Whether statements are prepared by name: not behind a pooler, where a session is somebody else's next. */
  readonly areNamed: boolean;
  /** How many may wait for a connection. */
  readonly mostWaiting: number;
};

/** Statements of which each has a connection for itself alone, so that it holds up nobody, whatever it waits for. */
export function exclusiveConnections(pool: Pool, options: Options): Way {
  const borrow = borrowingFrom(pool, options);
  const busy = new ChurningSet<Borrowed>();
  const waiting = new ChurningSet<(reason: Error) => void>();
  const { mostWaiting } = options;
  let isCancelled = false;

  /** A connection that comes too late is given back. */
  function borrowUntil(deadline: number): Promise<Borrowed> {
    return new Promise((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      const left = deadline - performance.now();
      if (left <= 0) return reject(outOfTime());
      const timer = setTimeout(() => refuse(outOfTime()), left);
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

  async function send(text: StatementText, values: readonly unknown[], deadline: number) {
    if (pool.waitingCount >= mostWaiting) throw unavailable('too many requests wait for a connection');
    const borrowed = await borrowUntil(deadline);
    busy.add(borrowed);
    const left = Math.max(deadline - performance.now(), 1);
    try {
      return await answerWithin(left, borrowed, text, withTimeLeft(values, left));
    } finally {
      busy.delete(borrowed);
      borrowed.release();
    }
  }

  return {
    send,
    get waitingCount() {
      return pool.waitingCount;
    },
    isCrowded: () => pool.waitingCount >= mostWaiting / 2,
    cancel() {
      isCancelled = true;
      for (const { pipeline } of busy) pipeline.abandon();
      for (const refuse of waiting) refuse(cancelled());
    },
  };
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
    throw isLate ? new Error('the time of the request is up: timeout', { cause: fault }) : fault;
  } finally {
    clearTimeout(timer);
  }
}
