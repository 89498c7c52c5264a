import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createResponseWriter } from '../../host/response-writer.ts';
import { createUnsent } from '../../host/unsent.ts';

/** More than the buffers of both sides hold. */
const body = 'x'.repeat(30_000_000);
const result = { statusCode: 200, headers: {}, body, isBase64Encoded: false };

async function isWhole(reader: Socket): Promise<boolean> {
  return Buffer.concat(await reader.toArray())
    .toString()
    .endsWith(`\r\n\r\n${body}`);
}

test('answers are waited for until they are sent, also those that are written meanwhile', async () => {
  const responseWriter = createResponseWriter(createUnsent(3 * body.length));
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => responses.push(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [first, second] = [connect(port, '127.0.0.1').pause(), connect(port, '127.0.0.1').pause()];
  for (const reader of [first, second])
    reader.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  while (responses.length < 2) await sleep(10);
  const write = (index: number) => responseWriter.write(responses[index] as ServerResponse, result, false);

  let isSent = false;
  const sent = responseWriter.untilSent().then(() => {
    isSent = true;
  });
  write(0);
  await sleep(100);
  const states = [isSent];
  write(1);
  const bodies = [await isWhole(first)];
  await sleep(100);
  states.push(isSent);
  bodies.push(await isWhole(second));
  await sent;
  server.close();

  expect(states).toEqual([false, false]);
  expect(bodies).toEqual([true, true]);
});
