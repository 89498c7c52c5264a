/** Counts passes of the event loop. Node accepts one connection in each; after a pass that accepted none, none waits. */
export class AcceptingPasses {
  /** Number of passes until now that accepted a connection, one after the other. */
  inARow = 0;
  #hasAccepted = false;

  onConnection(): void {
    if (this.inARow === 0 && !this.#hasAccepted) setImmediate(() => this.#count());
    this.#hasAccepted = true;
  }

  #count(): void {
    this.inARow = this.#hasAccepted ? this.inARow + 1 : 0;
    if (this.#hasAccepted) setImmediate(() => this.#count());
    this.#hasAccepted = false;
  }
}
