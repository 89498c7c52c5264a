import { maintain } from '../lib/cleanup.ts';
import type { Invocation } from '../lib/http/gateway.ts';
import { FUNCTION_DEFAULTS } from '../lib/lambda.ts';
import { readSettings } from '../lib/settings/settings.ts';

/** In milliseconds: the function stops when so much of its time is left. The next invocation continues. */
const MARGIN = 5000;

/**
 * For a schedule, not for requests: deletes expired idempotency keys and changes. It fails if PostgreSQL cannot be
 * reached.
 */
export async function handler(_event?: unknown, context?: Invocation): Promise<void> {
  const left = context?.getRemainingTimeInMillis?.();
  const signal = left === undefined ? undefined : AbortSignal.timeout(Math.max(left - MARGIN, 0));
  await maintain(readSettings(undefined, FUNCTION_DEFAULTS), signal);
}
