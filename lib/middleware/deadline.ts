import { unavailable } from '../problem.ts';
import type { Middleware, RequestContext, RequestInStack } from './middleware.ts';

/** Milliseconds before the end of an invocation at which it is answered all the same. */
export const DEADLINE_MARGIN = 250;

/** What it is answered with then. */
export function refuseAtDeadline(): never {
  throw unavailable('the invocation has run out of time');
}

/** Milliseconds until then: without end where there is no invocation. */
export function timeUntilDeadline({ getRemainingTimeInMillis }: RequestContext): number {
  if (!getRemainingTimeInMillis) return Number.POSITIVE_INFINITY;
  return Math.max(getRemainingTimeInMillis() - DEADLINE_MARGIN, 0);
}

/** The check, given up when the invocation's time is up. middy's own limit is on the handler alone. */
export function withDeadline({ before, ...rest }: Middleware): Middleware {
  if (!before) return rest;
  return {
    ...rest,
    before(request) {
      const checked = before(request);
      return checked && untilDeadline(request, checked);
    },
  };
}

async function untilDeadline({ context }: RequestInStack, checked: Promise<void>): Promise<void> {
  const left = timeUntilDeadline(context);
  if (left === Number.POSITIVE_INFINITY) return checked;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, left);
  });
  await Promise.race([checked, deadline.then(refuseAtDeadline)]).finally(() => clearTimeout(timer));
}
