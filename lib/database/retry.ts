import { hasLostConnection, mayBeRetried } from './faults.ts';

/** In milliseconds. */
const FIRST_PAUSE = 4;
const LONGEST_PAUSE = 250;

/**
 * The pause before a statement is sent again, after so many attempts have failed, the last one by `fault`; undefined when
 * it must not be sent again. Random, so that those who got in each other's way do not meet again, and twice as long at
 * most each time. A read whose connection was lost is sent once more, elsewhere, without one.
 */
export function pauseBeforeRetry(fault: unknown, attempts: number, isRead = false): number | undefined {
  if (isRead && attempts === 1 && hasLostConnection(fault)) return 0;
  if (!mayBeRetried(fault)) return undefined;
  return Math.random() * Math.min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE);
}
