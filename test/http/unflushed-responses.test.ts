import { on, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextPass, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { writeResponse } from '../../host/response-writer.ts';
import { UnflushedResponses } from '../../host/sockets/unflushed-responses.ts';
import { listen } from '../stage/listening.ts';
import { timed } from '../stage/until.ts';

const END = 'the end';

/** More than the buffers of both sides hold. */
const body = `${'x'.repeat(12_000_000)}${END}`;
const limit = 20_000_000;
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

const server = createServer();
const arriving = on(server, 'request');
const responses = new UnflushedResponses(limit);
const { port } = await listen(server);
afterAll(() => void server.close().closeAllConnections());

/** A client that has sent its request and does not read, and the response to it. */
async function ask(requests = REQUEST) {
  const socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(requests);
  return [socket, await nextResponse()] as const;
}

async function nextResponse() {
  const { value } = await arriving.next();
  return value?.[1] as ServerResponse;
}

function answer(response: ServerResponse, text = body): ServerResponse {
  const result = { statusCode: 200, headers: {}, body: text, isBase64Encoded: false };
  writeResponse(response, result, false, responses, { keepAliveTimeout: 75 });
  return response;
}

/** The bytes that a connection receives until they end with this text. */
async function readUntil(socket: Socket, end: string): Promise<string> {
  const chunks: Buffer[] = [];
  let last = '';
  for await (const chunk of socket) {
    chunks.push(chunk);
    last = (last + chunk.toString()).slice(-end.length);
    if (last === end) break;
  }
  return Buffer.concat(chunks).toString();
}

test('when clients hold twice the limit, the connection with the earliest response is closed', async () => {
  const asked = [await ask(), await ask(), await ask(), await ask()];
  const destroyed = asked.map(([, response]) => answer(response)).map((response) => response.destroyed);

  expect(destroyed).toEqual([true, false, false, false]);
  for (const [socket] of asked) socket.destroy();
});

test('when clients hold more than the limit, connections that do not read are closed until the rest is within the limit', async () => {
  const asked = [await ask(), await ask()];
  await Promise.race(asked.map(([, response]) => once(answer(response), 'close')));

  const left = asked.filter(([, response]) => !response.destroyed);
  expect(left.length).toBe(1);
  for (const [socket] of left) expect((await readUntil(socket, END)).slice(-body.length)).toBe(body);
  for (const [socket] of asked) socket.destroy();
});

test('a single client that does not read is disconnected, too', async () => {
  const [socket, response] = await ask();
  const { milliseconds } = await timed(once(answer(response), 'close'));

  expect(response.writableFinished).toBe(false);
  // With others the wait would be ten seconds.
  expect(milliseconds).toBeGreaterThan(5000);
  socket.destroy();
});

test('a client that reads again stays connected, also if its next response takes long', async () => {
  const [socket, first] = await ask(REQUEST.repeat(2));
  answer(first);
  const received = readUntil(socket, 'the next');
  const second = await nextResponse();
  await once(first, 'close');
  // Longer than a client that does not read stays connected.
  await sleep(1000);
  answer(second, 'the next');

  expect((await received).endsWith('\r\n\r\nthe next')).toBe(true);
  socket.destroy();
});

test('the writer waits until all responses are sent, also those written meanwhile', async () => {
  const [[first, response], [second, later]] = [await ask(), await ask()];
  answer(response);
  const onSent = vi.fn();
  const sent = responses.untilSent().then(onSent);
  const firstClosed = once(response, 'close');
  await nextPass();
  answer(later, 'x'.repeat(5_000_000) + END);
  await readUntil(first, END);
  await firstClosed;
  await nextPass();

  expect(onSent).not.toHaveBeenCalled();
  await readUntil(second, END);
  await sent;
  for (const socket of [first, second]) socket.destroy();
});
