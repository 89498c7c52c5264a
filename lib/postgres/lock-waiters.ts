import { Semaphore } from '../semaphore.ts';
import { isLockTimeout } from './sessions/faults.ts';
import type { Executor, StatementRequest } from './sessions/pending-statement.ts';
import type { Row } from './sessions/rows.ts';
import { LOCK_GRACE_MS } from './sessions/session-executor.ts';

/** How long a statement waits for its lock, at first and at most, before another one tries. */
const FIRST_TRY_MS = 50;
const MAX_TRY_MS = 200;

/**
 * Sends short statements that wait for a lock, over a part of the sessions of `executor`. Those that have tried for the
 * shortest time go first, so that none whose lock is free soon waits for those whose locks are kept.
 */
export class LockWaiters implements Executor {
  readonly #executor: Executor;
  readonly #tries: Semaphore;

  /** `maxInProgress` is the maximum number of statements that wait for a lock at the same time. */
  constructor(executor: Executor, maxInProgress: number) {
    this.#executor = executor;
    this.#tries = new Semaphore(maxInProgress, 'too many statements wait for locks');
  }

  async send(request: StatementRequest): Promise<readonly Row[]> {
    const { deadline } = request;
    for (let lockWait = FIRST_TRY_MS; ; lockWait = Math.min(lockWait * 2, MAX_TRY_MS)) {
      const left = Math.max(deadline - performance.now(), 0);
      const tryOnce = () => this.#executor.send({ ...request, maxLockWait: lockWait });
      try {
        return await this.#tries.run(left, tryOnce, lockWait);
      } catch (fault) {
        if (!isLockTimeout(fault) || deadline - performance.now() <= LOCK_GRACE_MS) throw fault;
      }
    }
  }

  get waitingCount(): number {
    return this.#tries.waitingCount;
  }
}
