/** In milliseconds. Callers commonly give up after a second, and connect again. */
const LONG_MS = 50;

/** Node accepts one connection in each pass of the event loop. After a pass that accepted none, none waits. */
export class AcceptQueue {
  #since = Number.POSITIVE_INFINITY;
  #hasAccepted = false;

  /** Whether connections have waited for so long, so that callers may have given up when they are accepted. */
  get isLong(): boolean {
    return performance.now() - this.#since >= LONG_MS;
  }

  onConnection(): void {
    this.#hasAccepted = true;
    if (Number.isFinite(this.#since)) return;
    this.#since = performance.now();
    setImmediate(() => this.#afterPass());
  }

  #afterPass(): void {
    if (this.#hasAccepted) setImmediate(() => this.#afterPass());
    else this.#since = Number.POSITIVE_INFINITY;
    this.#hasAccepted = false;
  }
}
