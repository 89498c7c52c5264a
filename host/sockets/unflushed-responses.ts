import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/** In milliseconds. A client that takes longer to read its response is disconnected. */
const MAX_READING_MS = 10_000;

/** In milliseconds. If the kernel has accepted nothing of a response for this time, its client does not read. */
const STALLED_MS = 250;

/** In milliseconds, after that. A client that still does not read is disconnected, however little is unflushed. */
const MAX_STALL_MS = 5000;

/** In bytes: 25 lists of 1,000 users with long names and addresses. */
const MAX_UNFLUSHED_BYTES = 16_000_000;

/**
 * The responses of one server that are written but not accepted by the kernel, because their clients have not read
 * earlier data. Together they have a limit: 67 clients that requested lists of 1,000 users and read nothing held 132
 * MB, and now hold 16 MB.
 *
 * Beyond `limit` bytes, clients that do not read are disconnected, those that have not read for the longest time first.
 * Beyond twice the limit any client is, the oldest response first. The last response stays, whatever its size.
 */
export class UnflushedResponses {
  readonly #limit: number;
  /** In the order in which they were written, with their bytes. */
  readonly #unflushed = new Map<ServerResponse, number>();
  /** In the order in which their clients stopped reading. */
  readonly #stalled = new Set<ServerResponse>();
  #total = 0;

  constructor(limit = MAX_UNFLUSHED_BYTES) {
    this.#limit = limit;
  }

  /** Must be called for a response of so many bytes that was not flushed at once. */
  add(response: ServerResponse, bytes: number): void {
    this.#unflushed.set(response, bytes);
    this.#total += bytes;
    const timer = setTimeout(() => response.destroy(), MAX_READING_MS).unref();
    // Node starts the timer again whenever the kernel accepts something.
    response.setTimeout(STALLED_MS, () => this.#onStall(response));
    // Called before Node removes the response from the connection: the next request may take any time.
    response.prependOnceListener('finish', () => response.setTimeout(0));
    response.once('close', () => {
      clearTimeout(timer);
      this.#remove(response);
    });
    this.#enforceLimit();
  }

  /** Resolves when clients have received everything that was written. */
  async untilSent(): Promise<void> {
    // The last response is written right after the end of the drain, and further ones while these are being sent.
    do {
      await setImmediate();
      await Promise.all([...this.#unflushed.keys()].map((response) => once(response, 'close')));
    } while (this.#unflushed.size > 0);
  }

  #onStall(response: ServerResponse): void {
    if (this.#stalled.has(response)) return void response.destroy();
    this.#stalled.add(response);
    response.setTimeout(MAX_STALL_MS);
    this.#enforceLimit();
  }

  #enforceLimit(): void {
    while (this.#total > this.#limit && this.#unflushed.size > 1) {
      const isAnyCut = this.#stalled.size === 0 && this.#total > 2 * this.#limit;
      const [response] = isAnyCut ? this.#unflushed.keys() : this.#stalled;
      if (!response) return;
      this.#remove(response);
      response.destroy();
    }
  }

  #remove(response: ServerResponse): void {
    this.#total -= this.#unflushed.get(response) ?? 0;
    this.#unflushed.delete(response);
    this.#stalled.delete(response);
  }
}
