import type { Invocation } from './gateway.ts';
import { unavailable } from './problem.ts';

/** Milliseconds before the end of an invocation at which the request is answered in any case. */
export const DEADLINE_MARGIN_MS = 250;

/** The refusal of a request at its deadline. */
export function refuseAtDeadline(): never {
  throw unavailable('the invocation has run out of time');
}

/** Milliseconds until the deadline; infinity without an invocation. */
export function getTimeUntilDeadline({ getRemainingTimeInMillis }: Invocation): number {
  if (!getRemainingTimeInMillis) return Number.POSITIVE_INFINITY;
  return Math.max(getRemainingTimeInMillis() - DEADLINE_MARGIN_MS, 0);
}
