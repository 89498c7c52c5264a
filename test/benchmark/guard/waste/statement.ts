import { type OutgoingStatement, Pipeline } from '../../../../lib/postgres/wire/pipeline.ts';

// Sends each statement twice.
const { send } = Pipeline.prototype;
Pipeline.prototype.send = function (this: Pipeline, statement: OutgoingStatement, lockTimeout?: string) {
  send.call(this, { ...statement, resolve: () => {}, reject: () => {} }, lockTimeout);
  send.call(this, statement, lockTimeout);
};
