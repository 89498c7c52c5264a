import { createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { listen } from '../../stage/listening.ts';
import { until } from '../../stage/until.ts';
import { percentiles } from '../meters/percentile.ts';
import { openConnection } from './connection.ts';
import { Generator, type Load } from './generator.ts';
import { runLoads, TOKEN } from './load.ts';

const REQUEST = 'GET / HTTP/1.1\r\n\r\n';
const RESPONSE = 'HTTP/1.1 201 Created\r\nX-Long: y\r\ncontent-length: 4\r\n\r\nbody';

const stops: (() => unknown)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => void stop()));

/** The port of a server that does this with the socket of every request. */
async function startServer(respond: (socket: Socket, request: Buffer) => void): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    stops.push(() => socket.destroy());
    socket.on('data', (request) => respond(socket, request)).on('error', () => {});
  });
  stops.push(() => server.close());
  return (await listen(server)).port;
}

async function start(load: Omit<Load, 'port' | 'nextRequest'>, respond: (socket: Socket) => void) {
  const generator = new Generator({ ...load, port: await startServer(respond), nextRequest: () => REQUEST });
  await generator.start();
  return generator;
}

test('a response is received in pieces, cut anywhere', async () => {
  let cut = 0;
  const port = await startServer((socket) => {
    cut += 1;
    socket.write(RESPONSE.slice(0, cut), () => setImmediate(() => socket.write(RESPONSE.slice(cut))));
  });
  const statuses: (number | string)[] = [];
  const connection = openConnection(port, {
    open: () => connection.send(REQUEST),
    response(status) {
      statuses.push(status);
      if (cut < RESPONSE.length - 1) connection.send(REQUEST);
    },
    end: (reason) => statuses.push(reason),
  });
  stops.push(connection.close);

  await until('all are there', () => statuses.length === RESPONSE.length - 1);
  expect(new Set(statuses)).toEqual(new Set([201]));
});

test('a closed load sends the next request when there is a response, and not before', async () => {
  const waiting: Socket[] = [];
  const statuses: number[] = [];
  const load = { connections: 2, onResponse: (status: number) => statuses.push(status) };
  const generator = await start(load, (socket) => waiting.push(socket));
  await until('each connection has a request', () => waiting.length === 2);

  waiting[0]?.write(RESPONSE);
  await until('there is a third one', () => waiting.length === 3);
  expect([generator.counts.sent, statuses]).toEqual([3, [201]]);
  for (const socket of waiting.slice(1)) socket.write(RESPONSE);
  await generator.stop();
  expect([waiting.length, statuses]).toEqual([3, [201, 201, 201]]);
});

test('an open load counts the time from when a request was due, and leaves none out', async () => {
  const due: number[] = [];
  let requests = 0;
  const load = { connections: 1, rate: 1000, onResponse: (_: number, from: number) => due.push(from) };
  const generator = await start(load, (socket) => {
    requests += 1;
    // During the first response, fifty more requests become due.
    if (requests === 1) setTimeout(() => socket.write(RESPONSE), 50);
    else socket.write(RESPONSE);
  });
  await until('a hundred are there', () => due.length >= 100);
  await generator.stop();

  const steps = due.slice(1).map((moment, index) => moment - (due[index] ?? 0));
  expect([Math.min(...steps), Math.max(...steps)]).toEqual([expect.closeTo(1), expect.closeTo(1)]);
  expect(generator.counts).toMatchObject({ noConnection: 0, givenUp: 0, broken: 0 });
});

test.each([[false], [true]])(
  'callers that give up account for all that was due, queued: %j',
  async (queues) => {
    let requests = 0;
    let responses = 0;
    const load = { connections: 1, rate: 500, patienceMs: 200, queues, onResponse: () => (responses += 1) };
    // Of four requests, one has no response, and one breaks its connection.
    const generator = await start(load, (socket) => {
      requests += 1;
      if (requests % 4 === 1) socket.destroy();
      else if (requests % 4 > 1) setTimeout(() => socket.write(RESPONSE), 30);
    });
    await until('two have given up', () => generator.counts.givenUp > 1);
    await until('two have broken', () => generator.counts.broken > 1);
    await generator.stop();

    const { due, sent, noConnection, givenUp, broken } = generator.counts;
    expect([sent + noConnection, responses + givenUp + broken]).toEqual([due, sent]);
    expect(broken).toBeGreaterThan(1);
  },
);

test('a load whose callers wait ends at a connection that breaks, and has the reason', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const load = { connections: 2, onResponse() {}, onBreak: resolve };
  const generator = await start(load, (socket) => socket.destroy());

  expect(await promise).toMatch(/closed|ECONNRESET/);
  await generator.stop();
});

test('a load counts each kind of response, and sends each token in turn', async () => {
  const tokens: string[] = [];
  const port = await startServer((socket, request) => {
    tokens.push(String(request).trim());
    socket.write(RESPONSE.replace('201', String([201, 503, 404][tokens.length % 3])));
  });
  const requests = { list: [`${TOKEN}\r\n\r\n`], tokens: ['one', 'two'], renewAfter: 0 };
  const [outcome] = await runLoads({ port, connections: 1, patienceMs: 1000, seconds: 0.2, requests });
  const { sent = 0, answered = 0, refused = 0, other = 0 } = outcome ?? {};

  expect(answered + refused + other).toBe(sent);
  expect(Math.min(answered, refused, other)).toBeGreaterThanOrEqual(Math.floor(sent / 3));
  expect(tokens.slice(0, 3)).toEqual(['one', 'two', 'one']);
});

test('a load does not count what comes too late', async () => {
  const port = await startServer((socket) => setTimeout(() => socket.write(RESPONSE), 50));
  const job = { port, connections: 1, seconds: 0.2, patienceMs: 20, requests: { list: [REQUEST] } };
  const [outcome] = await runLoads(job);

  expect(outcome).toMatchObject({ answered: 0, sent: (outcome?.givenUp ?? 0) + (outcome?.late ?? 0) });
});

test('a share of all values does not exceed its percentile', () => {
  expect(percentiles([3, 1, 4, 2], 0, 0.5, 0.99, 1)).toEqual([1, 3, 4, 4]);
});
