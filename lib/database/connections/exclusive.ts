import type { Pool } from 'pg';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../problem.ts';
import { lockTimeoutIn, withTimeLeft } from '../time-left.ts';
import { type Borrowed, borrowingFrom } from './borrowed.ts';
import type { Pipeline, StatementText } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { cancelled, outOfTime, type Way } from './way.ts';

type Options = {
  /** Whether statements are prepared by name: not behind a pooler, where a session is somebody else's next. */
  readonly areNamed: boolean;
  /** How many may wait for a connection. */
  readonly mostWaiting: number;
  /** `lock_timeout` of the sessions, in milliseconds; 0, for none, when it is left out. */
  readonly lockTimeout?: number;
};

/** A way for statements of which each has a connection for itself alone, so that it holds up nobody behind it. */
export type ExclusiveConnections = Way & {
  /** As `send`, whatever the `lock_timeout` of the sessions: it waits for a lock until its time is up. */
  readonly sendPatiently: Way['send'];
};

const SET_LOCK_TIMEOUT = { sql: "select set_config('lock_timeout', $1, false)", name: 'lock_timeout' };

/** Connections of this pool. */
export function exclusiveConnections(pool: Pool, options: Options): ExclusiveConnections {
  const borrow = borrowingFrom(pool, options);
  const busy = new ChurningSet<Borrowed>();
  const waiting = new ChurningSet<(reason: Error) => void>();
  const { mostWaiting, lockTimeout = 0 } = options;
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

  function sending({ isPatient }: { readonly isPatient: boolean }): Way['send'] {
    return async (text, values, deadline) => {
      if (pool.waitingCount >= mostWaiting) throw unavailable('too many requests wait for a connection');
      const borrowed = await borrowUntil(deadline);
      busy.add(borrowed);
      const left = Math.max(deadline - performance.now(), 1);
      const longest = lockTimeoutIn(left);
      const limit = isPatient || lockTimeout === 0 ? longest : Math.min(lockTimeout, longest);
      try {
        if (isPatient) setLockTimeout(borrowed.pipeline, limit);
        const answer = answerWithin(left, borrowed, text, withTimeLeft(values, limit));
        if (isPatient) setLockTimeout(borrowed.pipeline, lockTimeout);
        return await answer;
      } finally {
        busy.delete(borrowed);
        borrowed.release();
      }
    };
  }

  return {
    send: sending({ isPatient: false }),
    sendPatiently: sending({ isPatient: true }),
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

/** In one write with the statement behind it, or before it, which is told when the connection fails. */
function setLockTimeout(pipeline: Pipeline, milliseconds: number): void {
  pipeline.send({ text: SET_LOCK_TIMEOUT, values: [String(milliseconds)], resolve() {}, reject() {} });
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
