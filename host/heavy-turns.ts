import type { ServerResponse } from 'node:http';

/**
 * Few requests at once of those that become many times their body: a batch its values, a statement, rows, an answer. Of 64
 * at once these lived through several collections of the young generation, which moved them to the old one; those that wait
 * for their turn are a request that is not read yet.
 *
 * One is begun in a turn of the event loop, for Node accepts one connection in each: with 2,000 callers of batches at five
 * times what there is, of whom those who give up connect anew, /health was answered after 0.9 s in place of 5 to 14.
 */
export type HeavyTurns = {
  readonly isFree: boolean;
  /** Takes a turn for a request, until that is answered. */
  begin(response: ServerResponse): void;
};

const MOST = 8;

/** In milliseconds: whoever takes longer waits for PostgreSQL, or for its caller, and holds up nobody any more. */
const LONGEST = 20;

/** The turns of one instance; `onFree` is called whenever another may be free. */
export function createHeavyTurns(onFree: () => void): HeavyTurns {
  let taken = 0;
  let isOneBegun = false;

  return {
    get isFree() {
      return taken < MOST && !isOneBegun;
    },
    begin(response) {
      taken += 1;
      isOneBegun = true;
      setImmediate(() => {
        isOneBegun = false;
        onFree();
      });
      const timer = setTimeout(end, LONGEST);
      response.once('close', end);

      function end(): void {
        clearTimeout(timer);
        response.off('close', end);
        taken -= 1;
        onFree();
      }
    },
  };
}
