import { maintain } from '../lib/cleanup.ts';
import { FUNCTION_DEFAULTS, lambdaTask } from '../lib/lambda.ts';

/**
 * For a schedule, not for requests: deletes expired idempotency keys and changes. It fails if PostgreSQL cannot be
 * reached. The next invocation continues where the time of this one was up.
 */
export const handler = /* @__PURE__ */ lambdaTask(maintain, FUNCTION_DEFAULTS);
