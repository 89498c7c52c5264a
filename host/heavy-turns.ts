import type { ServerResponse } from 'node:http';

/**
 * Few requests at once of those that become many times their body: a batch its values, a statement, rows, an answer. Of 64
 * at once these lived through several collections of the young generation, which moved them to the old one; those that wait
 * for their turn are a request that is not read yet.
 */
export type HeavyTurns = {
  readonly isFree: boolean;
  /** Takes a turn for a request, until that is answered. */
  begin(response: ServerResponse): void;
};

const MOST = 8;

/** In milliseconds: whoever takes longer waits for PostgreSQL, or for its caller, and holds up nobody any more. */
const LONGEST = 20;

/** The turns of one instance; each that ends is told. */
export function createHeavyTurns(onEnd: () => void): HeavyTurns {
  let taken = 0;

  return {
    get isFree() {
      return taken < MOST;
    },
    begin(response) {
      taken += 1;
      const timer = setTimeout(end, LONGEST);
      response.once('close', end);

      function end(): void {
        clearTimeout(timer);
        response.off('close', end);
        taken -= 1;
        onEnd();
      }
    },
  };
}
