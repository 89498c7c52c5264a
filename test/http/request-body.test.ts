import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { RequestEvent } from '../../host/request-event.ts';

test.each([
  ['a part of its body', 'Content-Length: 100\r\n\r\n{"email"'],
  ['all of its body', 'Content-Length: 2\r\n\r\n{}'],
])('a body is incomplete if the client sends %s and disconnects before it is read', async (_case, rest) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(`POST / HTTP/1.1\r\nHost: localhost\r\n${rest}`);
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  const closed = new Promise((resolve) => request.on('error', () => {}).once('close', resolve));
  client.resetAndDestroy();
  await closed;

  await expect(new RequestEvent(request, response).receiveBody(1000)).rejects.toMatchObject({
    code: 'bad_request_error',
  });
  server.close();
});
