/** How many may wait at the door, so that the last of them is let in in time. */
export type Room = {
  readonly size: number;
  /** So many have been let in. */
  onLetIn(count: number): void;
  /** Follows the pace at which they were let in since the last time; `now` in milliseconds. */
  measure(now: number): void;
  /** Forgets the pace: what kept it down may be over. */
  reset(): void;
};

/** In milliseconds: answers come within a second then, also when the pace falls by a third meanwhile. */
const LONGEST_EXPECTED_WAIT = 600;

/** Let in a millisecond, until that has been measured: rather too many, since whoever waits too long is refused anyway. */
const FIRST_PACE = 8;

/** As many may wait at any pace. */
const LEAST = 128;

/** The share of the newest measurement. */
const WEIGHT = 1 / 4;

/** The room at one door. */
export function createRoom(): Room {
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
