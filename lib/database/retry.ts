import { mayBeRetried } from './faults.ts';

/** In milliseconds. */
const FIRST_PAUSE = 4;
const LONGEST_PAUSE = 250;

/**
 * The pause before a statement is sent again, after so many attempts have failed, the last one by `fault`; undefined when
 * it must not be sent again. Random, so that those who got in each other's way do not meet again, and twice as long at
 * most each time.
 */
export function pauseBeforeRetry(fault: unknown, attempts: number): number | undefined {
  if (!mayBeRetried(fault)) return undefined;
  return Math.random() * Math.min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE);
}
