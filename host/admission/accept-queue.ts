/** In milliseconds. Callers commonly give up after a second, and connect again. */
const LONG_MS = 50;

/** Fewer say nothing: a process that stood still for 50 ms accepts those that came meanwhile. */
const MIN_ACCEPTED = 8;

/** Node accepts one connection in each pass of the event loop. After a pass that accepted none, none waits. */
export class AcceptQueue {
  #since = 0;
  #accepted = 0;

  /** Whether connections have waited for so long, so that callers may have given up when they are accepted. */
  get isLong(): boolean {
    return this.#accepted >= MIN_ACCEPTED && performance.now() - this.#since >= LONG_MS;
  }

  onConnection(): void {
    this.#accepted += 1;
    if (this.#accepted > 1) return;
    this.#since = performance.now();
    setImmediate(() => this.#afterPass(0));
  }

  #afterPass(acceptedBefore: number): void {
    const accepted = this.#accepted;
    if (accepted === acceptedBefore) this.#accepted = 0;
    else setImmediate(() => this.#afterPass(accepted));
  }
}
