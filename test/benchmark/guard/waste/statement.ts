import { type OutgoingStatement, Pipeline } from '../../../../lib/postgres/wire/pipeline.ts';

// Sends each statement twice.
const { send } = Pipeline.prototype;
Pipeline.prototype.send = function (this: Pipeline, statement: OutgoingStatement) {
  send.call(this, { ...statement, resolve: () => {}, reject: () => {} });
  send.call(this, statement);
};
