/** Maximum number of attempts per second at one host, while they fail. */
const MAX_PER_SECOND = 5;

/** In milliseconds. */
const SECOND_MS = 1000;
const PAUSE_MS = SECOND_MS / MAX_PER_SECOND;

type Queued = PromiseWithResolvers<void> & { readonly connect: () => Promise<void> };

/**
 * The attempts to connect to one host. While they succeed, up to five run at the same time. After a failure they run one
 * after the other, five per second at most, and the attempts that wait when one begins share its failure: a host that
 * refuses sessions is not asked once per request.
 */
export class ConnectionAttempts {
  readonly #queue: Queued[] = [];
  /** When each attempt of the last second began that has not succeeded (`performance.now()`). */
  #begun: number[] = [];
  #inProgress = 0;
  #mayFail = false;
  #failedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** Whether an attempt has failed within the last second, and none has succeeded since. */
  get isFailing(): boolean {
    return performance.now() - this.#failedAt < SECOND_MS;
  }

  /** A session was lost: the next attempt shows whether the host still accepts sessions. */
  doubt(): void {
    this.#mayFail = true;
  }

  /** Runs `connect` when an attempt may begin. @throws its failure, or that of the attempt that it waited for */
  make(connect: () => Promise<void>): Promise<void> {
    const queued = { connect, ...Promise.withResolvers<void>() };
    this.#queue.push(queued);
    this.#beginNext();
    return queued.promise;
  }

  #beginNext(): void {
    clearTimeout(this.#timer);
    while (this.#queue.length > 0) {
      const wait = this.#timeUntilNext();
      if (wait > 0) {
        // Without an end the attempt in progress goes on with the queue.
        if (wait < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#beginNext(), wait);
        return;
      }
      void this.#attempt(this.#queue.shift() as Queued);
    }
  }

  /** In milliseconds. */
  #timeUntilNext(): number {
    const now = performance.now();
    this.#begun = this.#begun.filter((begun) => now - begun < SECOND_MS);
    const [oldest = now] = this.#begun;
    if (this.#begun.length >= MAX_PER_SECOND) return Math.max(oldest + SECOND_MS - now, 1);
    if (!this.#mayFail) return 0;
    return this.#inProgress > 0 ? Number.POSITIVE_INFINITY : (this.#begun.at(-1) ?? 0) + PAUSE_MS - now;
  }

  async #attempt({ connect, resolve, reject }: Queued): Promise<void> {
    const begun = performance.now();
    const lastQueued = this.#queue.at(-1);
    this.#begun.push(begun);
    this.#inProgress += 1;
    try {
      await connect();
      this.#begun = this.#begun.filter((other) => other !== begun);
      this.#mayFail = false;
      this.#failedAt = Number.NEGATIVE_INFINITY;
      resolve();
    } catch (fault) {
      this.#mayFail = true;
      this.#failedAt = performance.now();
      reject(fault);
      const sharing = this.#queue.indexOf(lastQueued as Queued) + 1;
      for (const queued of this.#queue.splice(0, sharing)) queued.reject(fault);
    } finally {
      this.#inProgress -= 1;
      this.#beginNext();
    }
  }
}
