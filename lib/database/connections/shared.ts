import type { Pool } from 'pg';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../problem.ts';
import { type Borrowed, borrowingFrom } from './borrowed.ts';
import type { StatementText, ToSend } from './pipeline.ts';
import type { Row } from './row-reader.ts';
import { createTimeLimits } from './time-limits.ts';
import { cancelled, closed, noAnswer, noConnection, type Way } from './way.ts';

/** Connections that statements of different requests share. */
export type SharedConnections = Way & {
  /** Gives back what is idle now, and from now on what becomes so. */
  close(): void;
};

type Options = Pick<Parameters<typeof borrowingFrom>[1], 'hosts'> & {
  /** How many statements may be on their way on one connection. */
  readonly mostSent: number;
  /** How many may wait beside those that are on their way. */
  readonly mostWaiting: number;
  /** For how long a statement waits before it is sent, and for how long PostgreSQL may be silent; in milliseconds. */
  readonly poolTimeLimit: number;
  readonly timeLimit: number;
};

/** A statement that is not answered yet; it is given up at `until`. */
type Waiting = ToSend & { until: number; readonly deadline: number; readonly giveUp: () => void };

/** A connection in use: how many answers it had given when that was looked at, and when that number last changed. */
type Used = Borrowed & { answered: number; changedAt: number };

/**
 * Statements of different requests share connections, one behind the other without waiting for answers. One that is given
 * up costs its neighbours nothing: its answer comes all the same, and is thrown away.
 */
export function sharedConnections(pool: Pool, options: Options): SharedConnections {
  const { hosts, mostSent, mostWaiting, poolTimeLimit, timeLimit } = options;
  const borrow = borrowingFrom(pool, { hosts, areNamed: true, areReturned: false });
  const most = pool.options.max ?? 1;
  const queue = new ChurningSet<Waiting>();
  const limits = createTimeLimits(look);
  let used: readonly Used[] = [];
  let opening = 0;
  let [isCancelled, isClosing] = [false, false];

  function send(text: StatementText, values: readonly unknown[], deadline: number) {
    return new Promise<readonly Row[]>((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      if (isClosing) return reject(closed());
      if (queue.size >= mostWaiting) return reject(unavailable('too many requests wait for a connection'));
      const settle = () => {
        limits.delete(waiting);
        if (queue.size > 0) sendQueued();
      };
      const waiting: Waiting = {
        text,
        values,
        deadline,
        until: deadline,
        resolve(rows) {
          resolve(rows);
          settle();
        },
        reject(fault) {
          reject(fault);
          giveBackBroken();
          settle();
        },
        giveUp() {
          reject(queue.delete(waiting) ? noConnection() : noAnswer());
          settle();
        },
      };
      limits.add(waiting);
      if (!isSent(waiting)) {
        waiting.until = Math.min(deadline, performance.now() + poolTimeLimit);
        queue.add(waiting);
      }
    });
  }

  function isSent(waiting: Waiting): boolean {
    const connection = freest();
    const isFree = connection?.pipeline.length === 0;
    // Behind another it goes only where no connection is left to be opened.
    if (!isFree && opensAnother()) return false;
    if (!connection || connection.pipeline.length >= mostSent) return false;
    waiting.until = waiting.deadline;
    connection.pipeline.send(waiting);
    return true;
  }

  function sendQueued(): void {
    for (const waiting of queue) {
      if (!isSent(waiting)) return;
      queue.delete(waiting);
    }
  }

  function freest(): Used | undefined {
    let found: Used | undefined;
    for (const one of used) {
      if (one.pipeline.isBroken) {
        giveBackBroken();
        continue;
      }
      if (!found || one.pipeline.length < found.pipeline.length) found = one;
    }
    return found;
  }

  /** Unless there are as many as may be. */
  function opensAnother(): boolean {
    if (used.length + opening >= most || (used.length > 0 && hosts.refusesSessions)) return false;
    opening += 1;
    borrow()
      .finally(() => {
        opening -= 1;
      })
      .then(
        (borrowed) => {
          used = [
            ...used,
            { ...borrowed, answered: borrowed.pipeline.answered, changedAt: performance.now() },
          ];
          sendQueued();
        },
        (reason) => {
          // Without a connection they would wait in vain; else they share those that there are.
          if (used.length > 0) return sendQueued();
          for (const waiting of queue) waiting.reject(reason);
          queue.clear();
        },
      );
    return true;
  }

  /** Gives back what has been idle since the last look, and gives up what PostgreSQL is silent on. */
  function look(): boolean {
    const now = performance.now();
    for (const one of used) {
      const { pipeline } = one;
      const isIdle = pipeline.length === 0 && (pipeline.answered === one.answered || isClosing);
      if (isIdle) giveBack(one);
      else if (pipeline.length > 0 && pipeline.answered === one.answered && now - one.changedAt > timeLimit)
        pipeline.abandon();
      if (pipeline.answered === one.answered && pipeline.length > 0) continue;
      one.answered = pipeline.answered;
      one.changedAt = now;
    }
    if (queue.size > 0) sendQueued();
    return used.length > 0;
  }

  function giveBackBroken(): void {
    for (const one of used) if (one.pipeline.isBroken && one.pipeline.length === 0) giveBack(one);
  }

  function giveBack(one: Used): void {
    used = used.filter((other) => other !== one);
    one.release();
  }

  return {
    send,
    get waitingCount() {
      return queue.size;
    },
    cancel() {
      isCancelled = true;
      for (const waiting of queue) waiting.reject(cancelled());
      queue.clear();
      for (const { pipeline } of used) pipeline.abandon();
    },
    close() {
      isClosing = true;
      for (const one of used) if (one.pipeline.length === 0) giveBack(one);
    },
  };
}
