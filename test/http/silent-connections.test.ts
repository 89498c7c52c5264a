import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { Connections } from '../../host/sockets/connections.ts';
import { connectTo, requestText } from '../stage/connection.ts';
import { listen } from '../stage/listening.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

/** In milliseconds. */
const SILENCE = 300;

const ask = requestText('GET /', {});

/** Responds at once. A response to `/long` stays open until the test ends it. */
let url: string;
const connections = new Connections();
const long: ServerResponse[] = [];
const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  connections
    .of(request.socket)
    .add({ request, response, proceed: unreachable, drop: unreachable, rejectBody: unreachable });
  if (request.url === '/long') long.push(response);
  else response.end('ok');
});

function unreachable(): never {
  throw new Error('no request is pipelined');
}

beforeAll(async () => {
  connections.watch(server, SILENCE - 20, 20);
  ({ url } = await listen(server));
  return () => void server.close().closeAllConnections();
});

/** How long a connection stays open in milliseconds, from before its last activity. */
async function lifetime(doSomething: () => Promise<Awaited<ReturnType<typeof connectTo>>>): Promise<number> {
  const begun = performance.now();
  const connection = await doSomething();
  expect(await connection.rest()).toBe('');
  return performance.now() - begun;
}

// A timer counts from the pass of the event loop in which it was set.
const NOT_LESS = SILENCE - 5;

test('a connection that sends nothing is closed', async () => {
  expect(await lifetime(() => connectTo(url))).toBeGreaterThanOrEqual(NOT_LESS);
});

test('a connection that sends nothing after a response is closed after the same time as a new one', async () => {
  const connection = await connectTo(url);
  await sleep(SILENCE / 2);
  const askAgain = async () => {
    connection.send(ask);
    await connection.answer();
    return connection;
  };
  expect(await lifetime(askAgain)).toBeGreaterThanOrEqual(NOT_LESS);
});

test('a connection that waits for its response is not closed', async () => {
  const connection = await connectTo(url);
  connection.send(requestText('GET /long', {}));
  const response = await until('it is received', () => long[0]);
  expect(await lifetime(() => connectTo(url))).toBeGreaterThanOrEqual(NOT_LESS);

  response.end('at last');
  expect((await connection.answer()).body).toBe('at last');
  expect(await connection.rest()).toBe('');
});

test('every response states how long a connection may be silent, except for the last one of a connection', async ({
  onTestFinished,
}) => {
  const service = await startService({ SVC_KEEP_ALIVE_TIMEOUT: '605' });
  onTestFinished(service.stop);
  const keepAliveFields = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(`${service.url}/health`, { headers });
    return ['connection', 'keep-alive'].map((name) => answer.headers.get(name));
  };

  expect(await keepAliveFields()).toEqual(['keep-alive', 'timeout=605']);
  expect(await keepAliveFields({ connection: 'close' })).toEqual(['close', null]);

  const connection = await connectTo(service.url);
  const head = 'GET /health HTTP/1.0\r\n';
  connection.send(`${head}Connection: keep-alive\r\n\r\n${head}\r\n`);
  const responses = await connection.rest();
  expect(responses.match(/^(Connection|Keep-Alive): .*$/gm)).toEqual([
    'Connection: keep-alive',
    'Connection: close',
  ]);
});

test('SVC_KEEP_ALIVE_TIMEOUT is the time after which an idle connection is closed', async ({
  onTestFinished,
}) => {
  const service = await startService({ SVC_KEEP_ALIVE_TIMEOUT: '1' });
  onTestFinished(service.stop);
  const askOnce = async () => {
    const connection = await connectTo(service.url);
    connection.send(requestText('GET /health', {}));
    expect((await connection.answer()).status).toBe(200);
    return connection;
  };

  expect(await lifetime(askOnce)).toBeGreaterThanOrEqual(1000);
});
