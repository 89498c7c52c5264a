import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { writeResponse } from '../../host/response-writer.ts';
import { UnflushedResponses } from '../../host/sockets/unflushed-responses.ts';

/** More than the buffers of both sides hold. */
const body = 'x'.repeat(30_000_000);
const result = { statusCode: 200, headers: {}, body, isBase64Encoded: false };

async function isWhole(reader: Socket): Promise<boolean> {
  return Buffer.concat(await reader.toArray())
    .toString()
    .endsWith(`\r\n\r\n${body}`);
}

test('the writer waits until all responses are sent, also those written meanwhile', async () => {
  const unflushed = new UnflushedResponses(3 * body.length);
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => responses.push(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [first, second] = [connect(port, '127.0.0.1').pause(), connect(port, '127.0.0.1').pause()];
  for (const reader of [first, second])
    reader.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  while (responses.length < 2) await sleep(10);
  const write = (index: number) =>
    writeResponse(responses[index] as ServerResponse, result, false, unflushed, { keepAliveTimeout: 75 });

  let isSent = false;
  const sent = unflushed.untilSent().then(() => {
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

test.each([
  '',
  'plain',
  'x'.repeat(50_000),
  'x'.repeat(70_000),
  'Zoë',
  '\u007f\u0080ÿ',
  `${'x'.repeat(50_000)}田😀`,
  '田'.repeat(70_000),
])('a body is sent as UTF-8, with any content and length', async (text) => {
  const unflushed = new UnflushedResponses();
  const server = createServer((_request, response) =>
    writeResponse(response, { ...result, body: text }, false, unflushed, { keepAliveTimeout: 75 }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1');
  reader.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const answer = Buffer.concat(await reader.toArray());
  server.close();

  const sent = Buffer.from(text);
  const content = answer.subarray(answer.indexOf('\r\n\r\n') + 4);
  expect(content.equals(sent)).toBe(true);
  expect(answer.toString('latin1')).toContain(`\r\nContent-Length: ${sent.length}\r\n`);
});
