import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { listen } from '../../stage/listening.ts';
import { openConnection } from './connection.ts';
import { Generator, type Load } from './generator.ts';
import { runLoads, TOKEN } from './load.ts';

const REQUEST = 'GET / HTTP/1.1\r\n\r\n';
const RESPONSE = 'HTTP/1.1 201 Created\r\nX-Long: y\r\ncontent-length: 4\r\n\r\nbody';

const stops: (() => unknown)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => void stop()));

/** The port of a server that does this with the socket of every request. */
async function startServer(respond: (socket: Socket) => void): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    stops.push(() => socket.destroy());
    socket.on('data', () => respond(socket)).on('error', () => {});
  });
  stops.push(() => server.close());
  return (await listen(server)).port;
}

describe('a connection', () => {
  /** Sends so many requests one after the other, and collects the statuses, or the reason for the end. */
  async function collect(respond: (socket: Socket) => void, requests = 1) {
    const port = await startServer(respond);
    const found: (number | string)[] = [];
    await new Promise<void>((resolve) => {
      const next = () => (found.length < requests ? connection.send(REQUEST) : resolve());
      const connection = openConnection(port, {
        open: next,
        response(status) {
          found.push(status);
          next();
        },
        end(reason) {
          found.push(reason);
          resolve();
        },
      });
      stops.push(connection.close);
    });
    return found;
  }

  test('gives the status of each response when it is complete', async () => {
    expect(await collect((socket) => socket.write(RESPONSE), 2)).toEqual([201, 201]);
  });

  test('receives a response in pieces, cut anywhere', async () => {
    let cut = 0;
    const inPieces = (socket: Socket) => {
      cut += 1;
      socket.write(RESPONSE.slice(0, cut), () => setImmediate(() => socket.write(RESPONSE.slice(cut))));
    };

    const cuts = RESPONSE.length - 1;
    expect(await collect(inPieces, cuts)).toEqual(Array(cuts).fill(201));
  });

  test.each<readonly [string, (socket: Socket) => void, RegExp]>([
    [
      'a response without a length',
      (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\ncontent-length: 1'),
      /^a response without Content-Length: HTTP\/1\.1 200 OK$/,
    ],
    ['more bytes than the length', (socket) => socket.write(`${RESPONSE}more`), /^more bytes than/],
    ['a connection that the server ends', (socket) => socket.destroy(), /closed|ECONNRESET/],
  ])('ends with a reason: %s', async (_title, respond, reason) => {
    expect(await collect(respond)).toEqual([expect.stringMatching(reason)]);
  });
});

describe('a generator', () => {
  async function start(load: Omit<Load, 'port' | 'nextRequest'>, respond: (socket: Socket) => void) {
    const port = await startServer(respond);
    const generator = new Generator({ ...load, port, nextRequest: () => REQUEST });
    await generator.start();
    return generator;
  }

  test('of a closed load sends the next request when there is a response, and not before', async () => {
    const waiting: Socket[] = [];
    const statuses: number[] = [];
    const load = { connections: 2, onResponse: (status: number) => statuses.push(status) };
    const generator = await start(load, (socket) => waiting.push(socket));
    await sleep(20);
    expect(waiting).toHaveLength(2);

    waiting[0]?.write(RESPONSE);
    await sleep(20);
    expect([waiting.length, generator.counts.sent, statuses]).toEqual([3, 3, [201]]);
    for (const socket of waiting.slice(1)) socket.write(RESPONSE);
    await generator.stop();
    expect([waiting.length, statuses]).toEqual([3, [201, 201, 201]]);
  });

  test('of an open load waits for a free connection, and counts the time from when a request was due', async () => {
    const due: number[] = [];
    let requests = 0;
    const load = { connections: 1, rate: 1000, onResponse: (_: number, from: number) => due.push(from) };
    const begun = performance.now();
    const generator = await start(load, (socket) => {
      requests += 1;
      // During the first response, fifty more requests become due.
      if (requests === 1) setTimeout(() => socket.write(RESPONSE), 50);
      else socket.write(RESPONSE);
    });
    while (due.length < 100) await sleep(5);
    await generator.stop();

    const steps = due.slice(1).map((moment, index) => moment - (due[index] ?? 0));
    expect(Math.min(...steps)).toBeCloseTo(1);
    expect(Math.max(...steps)).toBeCloseTo(1);
    expect(due[0]).toBeGreaterThanOrEqual(begun);
    expect(generator.counts).toMatchObject({ noConnection: 0, givenUp: 0, broken: 0 });
  });

  test('whose callers give up connects again, and does not send what is due without a connection', async () => {
    const sockets = new Set<Socket>();
    const load = { connections: 2, rate: 500, patienceMs: 30, onResponse() {} };
    const generator = await start(load, (socket) => sockets.add(socket));
    await sleep(100);
    await generator.stop();

    const { due, sent, noConnection, givenUp, broken } = generator.counts;
    expect(sent + noConnection).toBe(due);
    expect(givenUp).toBe(sent);
    expect(sockets.size).toBe(sent);
    expect(sent).toBeGreaterThan(2);
    expect(broken).toBe(0);
  });

  test('whose callers queue sends what was due when a connection is free, and gives it up in time', async () => {
    const times: number[] = [];
    const onResponse = (_: number, from: number, to: number) => times.push(to - from);
    const generator = await start(
      { connections: 1, rate: 100, patienceMs: 200, queues: true, onResponse },
      (socket) => setTimeout(() => socket.write(RESPONSE), 30),
    );
    await sleep(1000);
    await generator.stop();

    const { due, sent, noConnection, givenUp, broken } = generator.counts;
    expect(sent + noConnection).toBe(due);
    expect(noConnection).toBeGreaterThan(10);
    expect(times.length + givenUp).toBe(sent);
    expect(Math.max(...times)).toBeGreaterThan(100);
    expect(Math.max(...times)).toBeLessThan(400);
    expect(broken).toBe(0);
  });

  test.each([
    ['give up', 'replaces connections that break', 1000, (sent: number) => sent > 2],
    ['wait', 'ends at a connection that breaks', undefined, (sent: number) => sent === 2],
  ])('whose callers %s %s', async (_callers, _title, patienceMs, isRight) => {
    const reasons: string[] = [];
    const onBreak = (reason: string) => reasons.push(reason);
    const load = { connections: 2, patienceMs, onResponse() {}, onBreak };
    const generator = await start(load, (socket) => socket.destroy());
    await sleep(50);
    await generator.stop();

    expect(generator.counts.broken).toBeGreaterThan(0);
    expect(isRight(generator.counts.sent)).toBe(true);
    expect(reasons.length > 0).toBe(patienceMs === undefined);
  });
});

describe('a load', () => {
  const job = { connections: 1, patienceMs: 1000, seconds: 0.2 };

  test('counts each kind of response', async () => {
    let requests = 0;
    const port = await startServer((socket) => {
      requests += 1;
      socket.write(RESPONSE.replace('201', String([201, 503, 404][requests % 3])));
    });
    const [outcome] = await runLoads({ ...job, port, requests: { list: [REQUEST] } });
    const { sent = 0, answered = 0, refused = 0, other = 0 } = outcome ?? {};

    expect(answered + refused + other).toBe(sent);
    expect(Math.min(answered, refused, other)).toBeGreaterThanOrEqual(Math.floor(sent / 3));
  });

  test('does not count what comes too late', async () => {
    const port = await startServer((socket) => setTimeout(() => socket.write(RESPONSE), 50));
    const [outcome] = await runLoads({ ...job, port, patienceMs: 20, requests: { list: [REQUEST] } });

    const { sent, answered, late = 0, givenUp = 0 } = outcome ?? {};

    expect(answered).toBe(0);
    expect(givenUp + late).toBe(sent);
  });

  test('puts each token into a request, one after the other', async () => {
    const received: string[] = [];
    const server = createServer((socket) =>
      socket.on('data', (chunk) => {
        received.push(String(chunk));
        socket.write(RESPONSE);
      }),
    );
    stops.push(() => server.close());
    const { port } = await listen(server);
    const requests = { list: [`${TOKEN}\r\n\r\n`], tokens: ['one', 'two'], renewAfter: 0 };
    await runLoads({ ...job, port, requests });

    expect(received.slice(0, 4).map((text) => text.trim())).toEqual(['one', 'two', 'one', 'two']);
  });
});
