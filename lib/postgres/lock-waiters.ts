import { Semaphore } from '../semaphore.ts';
import type { Settings } from '../settings/settings.ts';
import { LOCK_GRACE_MS, type SessionExecutor } from './session-executor.ts';
import {
  type Executor,
  isLockTimeout,
  maxWaitingStatements,
  type Row,
  refusals,
  type StatementText,
} from './sessions/index.ts';

/** How long a statement waits for its lock, at first and at most, before another one tries. */
const FIRST_TRY_MS = 50;
const MAX_TRY_MS = 200;

/**
 * Sends short statements that wait for a lock, over a part of the sessions of `executor`. Those that have tried for the
 * shortest time go first, so that none whose lock is free soon waits for those whose locks are kept.
 */
export class LockWaiters implements Executor {
  readonly #executor: SessionExecutor;
  readonly #maxWaiting: number;
  readonly #tries: Semaphore;

  /** `maxInProgress` is the maximum number of statements that wait for a lock at the same time. */
  constructor(executor: SessionExecutor, settings: Settings['postgres'], maxInProgress: number) {
    this.#executor = executor;
    this.#maxWaiting = maxWaitingStatements(settings);
    this.#tries = new Semaphore(maxInProgress, 'too many statements wait for locks');
  }

  async send(text: StatementText, values: readonly unknown[], deadline: number): Promise<readonly Row[]> {
    if (this.waitingCount >= this.#maxWaiting) throw refusals.queueFull();
    for (let lockWait = FIRST_TRY_MS; ; lockWait = Math.min(lockWait * 2, MAX_TRY_MS)) {
      const left = deadline - performance.now();
      if (left <= 0) throw refusals.timeLimitReached();
      const tryOnce = () => this.#executor.send(text, values, deadline, lockWait);
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
