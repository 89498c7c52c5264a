import type { PostgresClient } from './postgres-client.ts';

/** Maximum number of attempts at one host: per second while they fail, and at the same time while they succeed. */
const MAX_PER_SECOND = 5;
const SECOND_MS = 1000;
const PAUSE_MS = SECOND_MS / MAX_PER_SECOND;

type Queued = PromiseWithResolvers<void> & { readonly session: PostgresClient };

/** Attempts to connect to one host. Those that wait when an attempt begins share its failure. */
export class SessionOpening {
  hasFailed = false;
  readonly #onFailure: () => void;
  readonly #queue: Queued[] = [];
  #inProgress = 0;
  /** When an attempt may begin while they fail (`performance.now()`). */
  #nextAt = 0;
  #lastFailureAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(onFailure: () => void) {
    this.#onFailure = onFailure;
  }

  /** Opens the session when an attempt may begin. @throws its failure, or that of the attempt that it waited for */
  open(session: PostgresClient): Promise<void> {
    const queued = { session, ...Promise.withResolvers<void>() };
    this.#queue.push(queued);
    this.#beginNext();
    return queued.promise;
  }

  /** The end of an attempt calls this again. */
  #beginNext(): void {
    clearTimeout(this.#timer);
    while (this.#queue.length > 0 && this.#inProgress < (this.hasFailed ? 1 : MAX_PER_SECOND)) {
      // Successes between failures do not end the limit: half of the attempts at a balancer with a dead server fail.
      const now = performance.now();
      const wait = now - this.#lastFailureAt < SECOND_MS ? this.#nextAt - now : 0;
      if (wait > 0) {
        this.#timer = setTimeout(() => this.#beginNext(), wait);
        return;
      }
      void this.#attempt(this.#queue.shift() as Queued);
    }
  }

  async #attempt({ session, resolve, reject }: Queued): Promise<void> {
    const lastQueued = this.#queue.at(-1);
    this.#nextAt = Math.max(this.#nextAt, performance.now()) + PAUSE_MS;
    this.#inProgress += 1;
    try {
      await session.openInTime();
      this.#nextAt -= PAUSE_MS;
      this.hasFailed = false;
      resolve();
    } catch (fault) {
      this.hasFailed = true;
      this.#lastFailureAt = performance.now();
      const sharing = this.#queue.indexOf(lastQueued as Queued) + 1;
      for (const queued of this.#queue.splice(0, sharing)) queued.reject(fault);
      reject(fault);
      this.#onFailure();
    } finally {
      this.#inProgress -= 1;
      this.#beginNext();
    }
  }
}
