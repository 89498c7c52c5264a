import { unavailable } from '../../http/problem.ts';
import { createSemaphore } from '../../semaphore.ts';
import { isLockTimeout } from '../faults.ts';
import { LOCK_GRACE_MS } from '../lock-timeout.ts';
import { type Executor, timeLimitReached } from './executor.ts';
import type { SessionExecutor } from './session-executor.ts';

type Options = {
  /** How many are on the way at once. */
  readonly maxInProgress: number;
  /** With so many that wait for that, until their time is up, no more are taken: they have been sent before. */
  readonly maxWaiting: number;
};

/** In milliseconds: for so long a statement waits for its lock at first, and at last, before it lets others have a try. */
const FIRST_TRY_MS = 50;
const MAX_TRY_MS = 200;

/**
 * A part of these connections, for short statements that wait for a lock that somebody keeps: with five callers who changed a
 * user whose row was locked for four seconds they had all of the connections that creates with a key, batches and the
 * changes have.
 *
 * They take turns, whoever is to have the shortest first, so that nobody whose lock is free in a moment waits for those
 * whose locks are kept. (What may take long waits on, for it may have a key meanwhile, and would give it away.)
 */
export function createLockWaiters(
  executor: SessionExecutor,
  { maxInProgress, maxWaiting }: Options,
): Executor {
  const turns = createSemaphore(maxInProgress, 'too many wait for locks');

  return {
    async send(text, values, deadline) {
      if (turns.waitingCount >= maxWaiting) throw unavailable('too many wait for locks');
      for (let tryLimit = FIRST_TRY_MS; ; tryLimit = Math.min(tryLimit * 2, MAX_TRY_MS)) {
        const left = deadline - performance.now();
        if (left <= 0) throw timeLimitReached();
        const tryOnce = () => executor.send(text, values, deadline, tryLimit);
        try {
          return await turns.run(left, tryOnce, tryLimit);
        } catch (fault) {
          const isTooLate = deadline - performance.now() <= LOCK_GRACE_MS;
          if (isTooLate || !isLockTimeout(fault)) throw fault;
        }
      }
    },
    get waitingCount() {
      return turns.waitingCount;
    },
    // Whoever has waited is sent then, and rejected.
    cancel: () => executor.cancel(),
  };
}
