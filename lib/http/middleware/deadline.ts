import { unavailable } from '../problem.ts';
import type { Check, RequestContext, RequestInStack } from './middleware.ts';

/** Milliseconds before the end of an invocation at which the request is answered in any case. */
export const DEADLINE_MARGIN_MS = 250;

/** The refusal of a request at its deadline. */
export function refuseAtDeadline(): never {
  throw unavailable('the invocation has run out of time');
}

/** Milliseconds until the deadline; infinity without an invocation. */
export function getTimeUntilDeadline({ getRemainingTimeInMillis }: RequestContext): number {
  if (!getRemainingTimeInMillis) return Number.POSITIVE_INFINITY;
  return Math.max(getRemainingTimeInMillis() - DEADLINE_MARGIN_MS, 0);
}

/** Ends the check when the deadline of the invocation is reached. middy's own limit applies to the handler only. */
export function endAtDeadline(check: Check): Check {
  return (request) => {
    const checked = check(request);
    return checked && raceDeadline(request, checked);
  };
}

async function raceDeadline({ context }: RequestInStack, checked: Promise<void>): Promise<void> {
  const left = getTimeUntilDeadline(context);
  if (left === Number.POSITIVE_INFINITY) return checked;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, left);
  });
  await Promise.race([checked, deadline.then(refuseAtDeadline)]).finally(() => clearTimeout(timer));
}
