import { lambdaTask } from '../lib/lambda.ts';
import { runMigrations } from '../lib/migrations/index.ts';
import { createEventLog } from '../lib/observability/event-log.ts';
import { LineWriter } from '../lib/observability/line-writer.ts';

/** For a step of a deployment, not for requests: runs the pending migrations. It fails if one of them fails. */
export const handler = /* @__PURE__ */ lambdaTask((settings, signal) => {
  const lines = new LineWriter();
  const log = createEventLog(settings, (line) => lines.write(line));
  return runMigrations(settings.postgres, signal, log);
});
