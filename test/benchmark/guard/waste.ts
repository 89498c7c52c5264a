import { subscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import type { PendingStatement } from '../../../lib/postgres/sessions/pending-statement.ts';
import { Session } from '../../../lib/postgres/sessions/session.ts';

// A planted fault of each kind, loaded into the host before anything else.

// Sends each statement twice.
const { send } = Session.prototype;
Session.prototype.send = function (this: Session, statement: PendingStatement, lockTimeout?: string) {
  const ignored = Object.assign(Object.create(statement), { resolve: () => {}, reject: () => {} });
  send.call(this, ignored, lockTimeout);
  send.call(this, statement, lockTimeout);
};

// Makes what nobody needs, and waits a few times, at each request.
subscribe('http.server.request.start', async () => {
  waste = Array.from({ length: 500 }, (_, number) => ({ number }));
  for (let link = 0; link < 5; link += 1) await undefined;
});

let waste: readonly unknown[] = [];
process.on('exit', () => waste.length);

// Adds a field to the head of each response, and sends the head by itself.
subscribe('http.server.request.start', (message) => {
  const { response } = message as { response: ServerResponse };
  response.setHeader('X-Waste', 'x'.repeat(100));
  const { writeHead } = response;
  response.writeHead = ((...head: Parameters<typeof writeHead>) => {
    const written = writeHead.apply(response, head);
    response.flushHeaders();
    return written;
  }) as typeof writeHead;
});
