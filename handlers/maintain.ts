import type { Invocation } from '../lib/gateway.ts';
import { FUNCTION_DEFAULTS } from '../lib/lambda.ts';
import { maintain } from '../lib/maintenance.ts';
import { readSettings } from '../lib/settings.ts';

/** In milliseconds: what is left of the time of the function when it stops; the next invocation goes on. */
const MARGIN = 5000;

/** For a schedule, not for requests: deletes what is kept no longer. It fails when PostgreSQL cannot be reached. */
export async function handler(_event?: unknown, context?: Invocation): Promise<void> {
  const left = context?.getRemainingTimeInMillis?.();
  const signal = left === undefined ? undefined : AbortSignal.timeout(Math.max(left - MARGIN, 0));
  await maintain(readSettings(undefined, FUNCTION_DEFAULTS), signal);
}
