import { Pipeline, type ToSend } from '../../../../lib/postgres/wire/pipeline.ts';

// Sends each statement twice.
const { send } = Pipeline.prototype;
Pipeline.prototype.send = function (this: Pipeline, statement: ToSend) {
  send.call(this, { ...statement, resolve: () => {}, reject: () => {} });
  send.call(this, statement);
};
