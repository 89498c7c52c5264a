/** How many requests may be queued, so that the last one is admitted in time. */
export type QueueLimit = {
  readonly size: number;
  /** Counts admitted requests. */
  onLetIn(count: number): void;
  /** Measures the pace of admission since the last call. `now` is in milliseconds. */
  measure(now: number): void;
  /** Forgets the pace, because its cause may be over. */
  reset(): void;
};

/** In milliseconds. Responses then come within a second, also if the pace falls by a third meanwhile. */
const LONGEST_EXPECTED_WAIT = 600;

/**
 * Requests admitted per millisecond before the first measurement. It is rather too large, because a request that waits
 * too long is refused anyway.
 */
const FIRST_PACE = 8;

/** Minimum size of the queue at any pace. */
const LEAST = 128;

/** Weight of the latest measurement. */
const WEIGHT = 1 / 4;

/** Creates the queue limit of one instance. */
export function createQueueLimit(): QueueLimit {
  let pace = FIRST_PACE;
  let letIn = 0;
  let since: number | undefined;

  return {
    get size() {
      return Math.max(pace * LONGEST_EXPECTED_WAIT, LEAST);
    },
    onLetIn(count) {
      letIn += count;
    },
    measure(now) {
      if (since !== undefined) pace += (letIn / (now - since) - pace) * WEIGHT;
      letIn = 0;
      since = now;
    },
    reset() {
      pace = FIRST_PACE;
      since = undefined;
    },
  };
}
