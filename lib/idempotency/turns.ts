import { keyInUse } from './refusals.ts';

/**
 * Runs `run` once all that came before it under this key have ended. `timeLeft` tells for how many milliseconds it may
 * wait; past that it is refused.
 */
export type InTurn = <Result>(
  key: string,
  timeLeft: () => number,
  run: () => Promise<Result>,
) => Promise<Result>;

/** In milliseconds: with less left no statement is worth sending. */
const TOO_LATE = 20;

/** In milliseconds: the one before, who came earlier, is out of time first, and its fault tells what there is to wait for. */
const GRACE = 100;

/**
 * Takes the requests of one instance under one key one after the other: of all that wait for a key one waits in
 * PostgreSQL, so that they hold one connection between them.
 */
export function createTurns(): InTurn {
  /** By key, the end of the last request under it: resolves, once all before it have ended too, with its fault if any. */
  const ends = new Map<string, Promise<unknown>>();

  return async (key, timeLeft, run) => {
    const before = ends.get(key);
    const { promise: end, resolve: ended } = Promise.withResolvers<unknown>();
    ends.set(key, end);
    void end.then(() => ends.get(key) === end && ends.delete(key));
    const refusal = before && (await refusalAfterWaiting(before, timeLeft));
    if (refusal) {
      // This request ends when the one before it does, and as that does.
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

/** Resolves with nothing once there is time for a try, else with the refusal of one that has waited in vain. */
async function refusalAfterWaiting(before: Promise<unknown>, timeLeft: () => number): Promise<unknown> {
  const { promise: tooLate, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(() => resolve(keyInUse()), Math.max(timeLeft(), 0) + GRACE);
  const fault = await Promise.race([before, tooLate]).finally(() => clearTimeout(timer));
  // No time is left: what the request before has failed for, this one would fail for as well.
  return timeLeft() > TOO_LATE ? undefined : (fault ?? keyInUse());
}
