import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Admission } from '../../host/admission/admission.ts';
import { Callers } from '../../host/admission/callers.ts';
import { AdmissionPace } from '../../host/admission/limits.ts';
import { RefusalCounts } from '../../host/admission/refusals.ts';
import { type QueuedRequest, Turns } from '../../host/admission/turns.ts';
import type { VerifiedToken } from '../../lib/auth/token-verifier.ts';
import { connectTo, written } from '../stage/connection.ts';
import { until } from '../stage/until.ts';

/** Admission judges by the time that the machine gives: a busy one takes other decisions than those expected here. */
const BY_TIME = { retry: 2 };

describe('the limit of the queue', () => {
  test('follows the pace, so that the last queued request is admitted within 0.6 seconds', () => {
    const pace = new AdmissionPace();
    for (let time = 0; time <= 10_000; time += 100) {
      pace.count(100);
      pace.measure(time);
    }
    expect(pace.servableInTime).toBeCloseTo(600, 0);
  });

  test('is small when no request is admitted any more, and as at first when all are', () => {
    const pace = new AdmissionPace();
    const first = pace.servableInTime;
    for (let time = 0; time <= 10_000; time += 100) pace.measure(time);
    expect(pace.servableInTime).toBe(128);
    pace.reset();
    expect(pace.servableInTime).toBe(first);
  });
});

/** A server of HTTP on a free port; gives its URL. */
async function listen(
  server: Server,
  { onTestFinished }: { onTestFinished(fn: () => unknown): void },
): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Connection = Awaited<ReturnType<typeof connectTo>>;

const send = (connection: Connection, path: string) =>
  connection.send(written(`GET ${path}`, [['Host', 'a']]));

async function ask(connection: Connection, path: string): Promise<string> {
  send(connection, path);
  return String((await connection.answer()).body);
}

/** Once this has been answered, whatever was sent before to the same server has been received, if it is read at all. */
async function untilReceived(url: string): Promise<void> {
  for (let count = 0; count < 2; count += 1) {
    const connection = await connectTo(url);
    await ask(connection, '/probe');
    connection.close();
  }
}

type Turn = Pick<QueuedRequest, 'caller' | 'isMemoryIntensive'> & { readonly name: string };

describe('the turns', () => {
  const light = (caller: string | undefined, name: string): Turn => ({
    caller,
    name,
    isMemoryIntensive: false,
  });
  const heavy = (caller: string | undefined, name: string): Turn => ({
    caller,
    name,
    isMemoryIntensive: true,
  });

  function start(requests: readonly Turn[]) {
    const turns = new Turns();
    for (const request of requests) {
      const response = new ServerResponse(new IncomingMessage(new Socket()));
      turns.add({ ...request, response, serve() {}, refuse() {} });
    }
    const nameOf = (request: QueuedRequest | undefined) => (request as Turn | undefined)?.name;
    return {
      turns,
      next: (isMemoryIntensiveFree = true) => nameOf(turns.takeNext(isMemoryIntensiveFree)),
      last: () => nameOf(turns.takeLastOfLongest()),
    };
  }

  test('serve one request of each caller in turn, in the order in which they came', () => {
    const { turns, next } = start([
      ...[1, 2, 3].map((count) => light('a', `a${count}`)),
      light(undefined, 'unverified 1'),
      light('b', 'b1'),
      light(undefined, 'unverified 2'),
    ]);
    expect([next(), next(), next(), next(), next(), next(), next()]).toEqual([
      'a1',
      'unverified 1',
      'b1',
      'a2',
      'unverified 2',
      'a3',
      undefined,
    ]);
    expect(turns.queued).toBe(0);
  });

  test('serve a memory-intensive request only within its limit, and the others before it', () => {
    const { turns, next } = start([heavy('a', 'heavy'), light('a', 'light'), heavy('b', 'other')]);
    expect([next(false), next(false), turns.hasNext(false), turns.hasNext(true)]).toEqual([
      'light',
      undefined,
      false,
      true,
    ]);
    expect([next(), next()]).toEqual(['other', 'heavy']);
  });

  test('give up the last request of the caller that has most', () => {
    const { last } = start([light('a', 'a1'), light('b', 'b1'), light('b', 'b2'), light('c', 'c1')]);
    expect(last()).toBe('b2');
  });

  test('give up the request whose turn is farthest away if all callers have as many', () => {
    const { last, next } = start([light('a', 'a1'), light('b', 'b1'), light('c', 'c1')]);
    expect([last(), next(), last()]).toEqual(['c1', 'a1', 'b1']);
  });

  test('read connections only for requests that can be queued', () => {
    const { turns } = start([light('a', 'a1')]);
    const sockets = Array.from({ length: 9 }, () => new Socket().pause());
    for (const [index, socket] of sockets.entries()) {
      socket.resume();
      turns.for(`${index % 3}`).pause(socket);
    }
    expect([turns.readAhead(1), sockets.filter((socket) => socket.isPaused()).length]).toEqual([false, 9]);
    expect([turns.readAhead(5), sockets.filter((socket) => socket.isPaused()).length]).toEqual([false, 5]);
    expect([turns.readAhead(128), sockets.filter((socket) => socket.isPaused()).length]).toEqual([false, 0]);
  });

  test('give up all requests that came before a time, of every caller', async () => {
    const { turns } = start([light('a', 'a1'), heavy('b', 'b1')]);
    await sleep(5);
    expect(turns.takeAllBefore(performance.now() - 1000)).toEqual([]);
    expect(turns.takeAllBefore(performance.now())).toHaveLength(2);
    expect([turns.queued, turns.readAhead(128), turns.isEmpty]).toEqual([0, false, true]);
  });

  test('are bounded: callers beyond 256 share one', () => {
    const callers = Array.from({ length: 256 }, (_, index) => light(`${index}`, `${index}`));
    const { last } = start([...callers, light('x', 'x1'), light('y', 'y1'), light('z', 'z1')]);
    expect([last(), last()]).toEqual(['z1', 'y1']);
  });

  test('never join a caller that is known with requests without a verified token', () => {
    const callers = Array.from({ length: 256 }, (_, index) => light(`${index}`, `${index}`));
    const { turns } = start([...callers, light('x', 'x1'), light(undefined, 'unverified')]);
    expect([turns.find('x') === turns.find('y'), turns.find('x') === turns.find(undefined)]).toEqual([
      true,
      false,
    ]);
  });
});

describe('the caller of a request', () => {
  const verified = (subject: string): VerifiedToken => ({
    principal: { subject, roles: [], claims: {} },
    exp: 0,
    generation: 0,
  });

  test('is the sub of its token, or unverified', () => {
    const callers = new Callers();
    expect(callers.identify(new Socket(), 'token', verified('a'))).toBe('a');
    expect(callers.identify(new Socket(), 'token', undefined)).toBeUndefined();
    expect(callers.identify(new Socket(), undefined, undefined)).toBeUndefined();
  });

  test('with a token that is not verified yet is once the caller last verified on the connection', () => {
    const callers = new Callers();
    const socket = new Socket();
    const identify = (token: string | undefined, known?: VerifiedToken) =>
      callers.identify(socket, token, known);
    expect([identify('first', verified('a')), identify('second'), identify('second')]).toEqual([
      'a',
      'a',
      undefined,
    ]);
    expect([identify(undefined), identify('second', verified('a')), identify('third')]).toEqual([
      undefined,
      'a',
      'a',
    ]);
    expect([identify('other', verified('b')), identify('fourth')]).toEqual(['b', 'b']);
    expect([identify('fifth'), identify('fourth'), identify('fifth')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('admission', () => {
  /** As in turns.ts. */
  const FEW = 16;
  /** So many are let in by the database of this test. */
  const INSIDE = 64;
  /** So often so many are answered while many wait, and their connections left. */
  const TURNS = 5;
  const CALLERS = (TURNS + 2) * INSIDE + FEW / 2;
  /** As in turns.ts: one of so many is paused later. */
  const EXCHANGE = 16;

  /** A server whose callers have a request each, all of them received; it answers what is let in when it is told to. */
  async function start(context: { onTestFinished(fn: () => unknown): void }) {
    const admitted: QueuedRequest[] = [];
    const received: string[] = [];
    let answered = 0;
    const admission = new Admission({
      inFlight: {
        get activeCount() {
          return received.length - answered;
        },
      },
      isDatabaseCrowded: () => admitted.length >= INSIDE,
      counts: new RefusalCounts({ warning() {} }),
    });
    const answer = (response: ServerResponse) => {
      answered += 1;
      response.setHeader('Content-Length', 2).end('ok');
    };
    const server = createServer(({ url = '' }, response) => {
      if (url === '/probe') return void response.setHeader('Content-Length', 2).end('ok');
      const request = {
        response,
        caller: 'a',
        isMemoryIntensive: false,
        serve: () => void admitted.push(request),
        refuse: () => answer(response),
      };
      const isAdmitted = admission.admits(request);
      received.push(url);
      if (isAdmitted) request.serve();
      else admission.queue(request);
    });
    const url = await listen(server, context);
    const callers = await Promise.all(Array.from({ length: CALLERS }, () => connectTo(url)));
    for (const [index, caller] of callers.entries()) send(caller, `/first/${index}`);
    await until('all are received', () => received.length === CALLERS, { every: 1 });
    // Each sends its next request as soon as the first is answered.
    const all = callers.map(async (caller, index) => {
      await caller.answer();
      send(caller, `/second/${index}`);
      return (await caller.answer()).body;
    });
    // A try that has failed waits for none of them.
    void Promise.allSettled(all);

    /** Answers what is let in, and waits until what the callers send then would be received. */
    async function answerAll(): Promise<void> {
      for (const request of admitted.splice(0)) {
        answer(request.response);
        admission.onAnswered(request);
      }
      await untilReceived(url);
    }

    return {
      admission,
      received,
      answerAll,
      /** Resolves once both requests of each caller have been answered. */
      async untilAllAnswered() {
        while (answered < 2 * CALLERS) await answerAll();
        return Promise.all(all);
      },
    };
  }

  test(
    'reads few requests ahead: the others in the order of their answers, in exchange for some',
    BY_TIME,
    async (context) => {
      const { received, answerAll, untilAllAnswered } = await start(context);
      for (let turn = 0; turn < TURNS; turn += 1) await answerAll();
      expect(received).toHaveLength(CALLERS);

      await answerAll();
      const read = Array.from({ length: FEW / 2 + INSIDE / EXCHANGE }, (_, index) => index);
      const staying = Array.from({ length: INSIDE }, (_, index) => TURNS * INSIDE + index);
      const next = [...read, ...staying.filter((_, index) => index % EXCHANGE !== EXCHANGE - 1)];
      await until('they are received', () => received.length >= CALLERS + next.length, { every: 1 });
      expect(received.slice(CALLERS).sort()).toEqual(next.map((index) => `/second/${index}`).sort());
      expect(await untilAllAnswered()).toEqual(Array.from({ length: CALLERS }, () => 'ok'));
    },
  );

  test('leaves nothing unread in a drain', BY_TIME, async (context) => {
    const { admission, received, answerAll, untilAllAnswered } = await start(context);
    await answerAll();
    await answerAll();
    expect(received).toHaveLength(CALLERS);

    admission.resumeAll();
    await answerAll();
    expect(received).toHaveLength(CALLERS + 3 * INSIDE);
    expect(await untilAllAnswered()).toEqual(Array.from({ length: CALLERS }, () => 'ok'));
  });
});
