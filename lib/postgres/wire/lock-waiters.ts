import { unavailable } from '../../http/problem.ts';
import { createSemaphore } from '../../semaphore.ts';
import { isLockTimeout } from '../faults.ts';
import { LOCK_GRACE } from '../lock-timeout.ts';
import { type Executor, outOfTime } from './executor.ts';
import type { SessionExecutor } from './session-executor.ts';

type Options = {
  /** How many are on the way at once. */
  readonly most: number;
  /** With so many that wait for that, until their time is up, no more are taken: they have been sent before. */
  readonly mostWaiting: number;
};

/** In milliseconds: for so long a statement waits for its lock at first, and at last, before it lets others have a try. */
const FIRST_TRY = 50;
const LONGEST_TRY = 200;

/**
 * A part of these connections, for short statements that wait for a lock that somebody keeps: with five callers who changed a
 * user whose row was locked for four seconds they had all of the connections that creates with a key, batches and the
 * changes have.
 *
 * They take turns, whoever is to have the shortest first, so that nobody whose lock is free in a moment waits for those
 * whose locks are kept. (What may take long waits on, for it may have a key meanwhile, and would give it away.)
 */
export function createLockWaiters(executor: SessionExecutor, { most, mostWaiting }: Options): Executor {
  const turns = createSemaphore(most, 'too many wait for locks');

  return {
    async send(text, values, deadline) {
      if (turns.waitingCount >= mostWaiting) throw unavailable('too many wait for locks');
      for (let patience = FIRST_TRY; ; patience = Math.min(patience * 2, LONGEST_TRY)) {
        const left = deadline - performance.now();
        if (left <= 0) throw outOfTime();
        const tryOnce = () => executor.send(text, values, deadline, patience);
        try {
          return await turns.run(left, tryOnce, patience);
        } catch (fault) {
          const isTooLate = deadline - performance.now() <= LOCK_GRACE;
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
