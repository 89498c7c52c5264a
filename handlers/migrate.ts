import { lambdaTask } from '../lib/lambda.ts';
import { runMigrations } from '../lib/migrations/index.ts';

/** For a step of a deployment, not for requests: runs the pending migrations. It fails if one of them fails. */
export const handler = /* @__PURE__ */ lambdaTask(({ postgres }, signal) => runMigrations(postgres, signal));
