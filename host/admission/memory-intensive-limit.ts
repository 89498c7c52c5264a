import type { ServerResponse } from 'node:http';

/**
 * Limits the number of requests in progress that need many times the memory of their body: a batch needs its values, a
 * statement, rows and a response. With 64 at once, this memory survived several collections of the young generation,
 * which moved it to the old one. A request that waits is not read yet.
 *
 * At most one begins in each turn of the event loop, because Node accepts one connection in each turn. With 2,000
 * callers of batches at five times the capacity, of which those that give up connect again, /health was answered after
 * 0.9 s instead of 5 to 14 s.
 */
export type MemoryIntensiveLimit = {
  readonly isFree: boolean;
  /** Occupies a place for a request until it is answered. */
  begin(response: ServerResponse): void;
};

const MOST = 8;

/** In milliseconds. A request that takes longer waits for PostgreSQL or for its client, and delays no other request. */
const LONGEST = 20;

/** Creates the limit of one instance. `onFree` is called whenever a place may have become free. */
export function createMemoryIntensiveLimit(onFree: () => void): MemoryIntensiveLimit {
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
