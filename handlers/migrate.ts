import { lambdaTask } from '../lib/lambda.ts';
import { runMigrations } from '../lib/migrations/index.ts';
import { createEventLog } from '../lib/observability/event-log.ts';
import { LineWriter } from '../lib/observability/line-writer.ts';

/** For a step of a deployment, not for requests: runs the pending migrations. It fails if one of them fails. */
export const handler = /* @__PURE__ */ lambdaTask((settings, signal) => {
  const log = createEventLog(settings, new LineWriter().write);
  return runMigrations(settings.postgres, signal, log);
});
