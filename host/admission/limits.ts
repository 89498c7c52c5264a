import type { ServerResponse } from 'node:http';

/** Responses then come within a second, also if the pace falls by a third meanwhile. */
const MAX_EXPECTED_WAIT_MS = 600;

/** Requests admitted per millisecond before the first measurement: rather too many, because late ones are refused. */
const FIRST_PACE = 8;

/** Minimum size of the queue at any pace. */
const MIN_LIMIT = 128;

const WEIGHT = 1 / 4;

export class AdmissionPace {
  #pace = FIRST_PACE;
  #admitted = 0;
  #since: number | undefined;

  /** Number of requests that can be admitted in time. */
  get servableInTime(): number {
    return Math.max(this.#pace * MAX_EXPECTED_WAIT_MS, MIN_LIMIT);
  }

  count(admitted: number): void {
    this.#admitted += admitted;
  }

  /** Measures the pace since the last call. `now` is in milliseconds. */
  measure(now: number): void {
    if (this.#since !== undefined) this.#pace += (this.#admitted / (now - this.#since) - this.#pace) * WEIGHT;
    this.#admitted = 0;
    this.#since = now;
  }
}

const MAX_MEMORY_INTENSIVE = 8;

/** A request that takes longer waits for PostgreSQL or for its client, and delays no other request. */
const MAX_COUNTED_MS = 20;

/** One begins in this time while other requests are queued, or the accept queue is long. A page takes the process 6 ms. */
export const INTERVAL_MS = { others: 20, acceptQueue: 100 };

/**
 * Limits the number of requests in progress that need many times the memory of their body: a batch needs its values, a
 * statement, rows and a response. At most one begins in each pass of the event loop, because Node accepts one
 * connection in each pass, and fewer while other requests or many connections wait.
 */
export class MemoryIntensiveLimit {
  readonly #interval: () => number;
  readonly #onFree: () => void;
  #taken = 0;
  #isOneBegun = false;

  /** `interval` is in milliseconds. `onFree` is called whenever a place may have become free. */
  constructor(interval: () => number, onFree: () => void) {
    this.#interval = interval;
    this.#onFree = onFree;
  }

  get isFree(): boolean {
    return this.#taken < MAX_MEMORY_INTENSIVE && !this.#isOneBegun;
  }

  begin(response: ServerResponse): void {
    this.#taken += 1;
    this.#isOneBegun = true;
    const begun = performance.now();
    const beginNext = () => {
      const left = begun + this.#interval() - performance.now();
      // The accept queue may be short before that. Other requests often are not queued for a moment.
      if (left > 0) return void setTimeout(beginNext, left > INTERVAL_MS.others ? 1 : left);
      this.#isOneBegun = false;
      this.#onFree();
    };
    setImmediate(beginNext);
    const end = () => {
      clearTimeout(timer);
      response.off('close', end);
      this.#taken -= 1;
      this.#onFree();
    };
    const timer = setTimeout(end, MAX_COUNTED_MS);
    response.once('close', end);
  }
}
