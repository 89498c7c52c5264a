/** Tasks of which at most `max` run at the same time. After a failure, and after the signal, none is started. */
export class Tasks {
  failure: unknown;
  readonly #max: number;
  readonly #signal: AbortSignal;
  readonly #running = new Set<Promise<void>>();

  constructor(max: number, signal: AbortSignal) {
    this.#max = max;
    this.#signal = signal;
  }

  get isEnded(): boolean {
    return this.failure !== undefined || this.#signal.aborted;
  }

  /** Resolves when there is place for another one. */
  async start(task: () => Promise<void>): Promise<void> {
    if (this.isEnded) return;
    const running: Promise<void> = task()
      .catch((error) => {
        this.failure ??= error;
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    if (this.#running.size >= this.#max) await Promise.race(this.#running);
  }

  /** Resolves when none is running. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** @throws the failure, or the reason of the signal */
  async finish(): Promise<void> {
    await this.end();
    this.#signal.throwIfAborted();
    if (this.failure) throw this.failure;
  }
}
