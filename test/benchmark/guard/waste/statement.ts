import type { PendingStatement } from '../../../../lib/postgres/sessions/pending-statement.ts';
import { Pipeline } from '../../../../lib/postgres/sessions/pipeline.ts';

// Sends each statement twice.
const { send } = Pipeline.prototype;
Pipeline.prototype.send = function (this: Pipeline, statement: PendingStatement, lockTimeout?: string) {
  const ignored = Object.assign(Object.create(statement), { resolve: () => {}, reject: () => {} });
  send.call(this, ignored, lockTimeout);
  send.call(this, statement, lockTimeout);
};
