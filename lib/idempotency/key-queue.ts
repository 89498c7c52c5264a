import { keyInUse } from './refusals.ts';

/** In milliseconds. With less time left, a statement is not sent. */
const TOO_LATE = 20;

/** In milliseconds. The earlier request reaches its time limit first, and its fault shows what it waited for. */
const GRACE = 100;

/**
 * Runs the requests of one instance with the same key one after the other. Only one of them waits in PostgreSQL, so
 * that together they hold one connection. `remainingTime` returns for how many milliseconds the current request may
 * wait. After this time it is refused.
 */
export function createKeyQueue(remainingTime: () => number) {
  /**
   * By key, the end of its last request. It resolves when all earlier ones have ended, too, with the fault of the
   * request if there is one.
   */
  const ends = new Map<string, Promise<unknown>>();

  return async <Result>(key: string, run: () => Promise<Result>): Promise<Result> => {
    const before = ends.get(key);
    const { promise: end, resolve: ended } = Promise.withResolvers<unknown>();
    ends.set(key, end);
    void end.then(() => ends.get(key) === end && ends.delete(key));
    const refusal = before && (await refusalAfterWaiting(before, remainingTime));
    if (refusal) {
      // This request ends together with the one before it, and in the same way.
      ended(before);
      throw refusal;
    }
    try {
      const result = await run();
      ended(undefined);
      return result;
    } catch (fault) {
      ended(fault);
      throw fault;
    }
  };
}

/**
 * Resolves with undefined if there is time for an attempt, otherwise with the refusal of a request that waited until
 * its time limit.
 */
async function refusalAfterWaiting(before: Promise<unknown>, remainingTime: () => number): Promise<unknown> {
  const { promise: tooLate, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(() => resolve(keyInUse()), Math.max(remainingTime(), 0) + GRACE);
  const fault = await Promise.race([before, tooLate]).finally(() => clearTimeout(timer));
  // There is no time left. The earlier request's fault would also be the fault of this one.
  return remainingTime() > TOO_LATE ? undefined : (fault ?? keyInUse());
}
