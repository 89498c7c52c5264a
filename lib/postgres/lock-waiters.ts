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
 * Sends short statements that wait for a lock, over a part of the sessions of `executor`. Otherwise a few callers who
 * changed a user whose row was locked would occupy all sessions that keyed creates, batches and changes need.
 *
 * A part of the statements try at the same time. Those that have tried for the shortest time go first, so a statement whose lock is free soon
 * does not wait for those whose locks are kept. (A statement of the kind `single` keeps its session while it waits: it may
 * have locked a key meanwhile, and would lose it.)
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
