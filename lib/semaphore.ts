import { unavailable } from './http/problem.ts';

type WaitingTask = { readonly rank: number; readonly begin: () => void };

export class Semaphore {
  readonly #most: number;
  readonly #reason: string;
  readonly #waiting = new Set<WaitingTask>();
  #running = 0;

  /** For `most` tasks. `reason` is the cause in the log if a task did not start in time. */
  constructor(most: number, reason: string) {
    this.#most = most;
    this.#reason = reason;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /**
   * Runs the task if fewer than `most` are running. Further tasks wait for at most `milliseconds`. Those of the lowest
   * rank start first.
   *
   * @throws {Problem} service_unavailable_error if the task did not start in time; also whatever the task throws
   */
  async run<Result>(milliseconds: number, task: () => Promise<Result>, rank = 0): Promise<Result> {
    if (this.#running === this.#most) await this.#waitForStart(milliseconds, rank);
    else this.#running += 1;
    try {
      return await task();
    } finally {
      const next = this.#takeNext();
      if (next) next.begin();
      else this.#running -= 1;
    }
  }

  #waitForStart(milliseconds: number, rank: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { rank, begin: resolve };
    const timer = setTimeout(() => {
      this.#waiting.delete(waiting);
      reject(unavailable(this.#reason));
    }, milliseconds);
    this.#waiting.add(waiting);
    return promise.finally(() => clearTimeout(timer));
  }

  #takeNext(): WaitingTask | undefined {
    let next: WaitingTask | undefined;
    for (const waiting of this.#waiting) if (!next || waiting.rank < next.rank) next = waiting;
    if (next) this.#waiting.delete(next);
    return next;
  }
}
