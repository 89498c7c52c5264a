import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { Admission } from '../../host/admission/admission.ts';
import { AdmissionPace } from '../../host/admission/limits.ts';
import { RefusalCounts } from '../../host/admission/refusals.ts';
import { type QueuedRequest, Turns } from '../../host/admission/turns.ts';
import { Connections } from '../../host/sockets/connections.ts';
import type { VerifiedToken } from '../../lib/auth/token-verifier.ts';
import { connectTo, requestText } from '../stage/connection.ts';
import { listen } from '../stage/listening.ts';
import { until } from '../stage/until.ts';

/** Admission depends on the time that requests take. On a busy machine its decisions differ from the expected ones. */
const BY_TIME = { retry: 2 };

test('refusals are logged once a second, each time those since the last time', () => {
  const lines: unknown[] = [];
  const refusals = new RefusalCounts({ warning: (_event, fields) => lines.push(fields) });
  vi.useFakeTimers();
  for (const count of [3, 2]) {
    for (let added = 0; added < count; added += 1) refusals.add('no_room', 'a');
    vi.advanceTimersByTime(1000);
  }
  vi.useRealTimers();

  expect(lines).toEqual([3, 2].map((count) => ({ count, caller: 'known' })));
});

test('a request that is queued for more than 0.85 seconds is refused', () => {
  vi.useFakeTimers();
  const from = performance.now();
  const refusedAfter: number[] = [];
  const inFlight = { servedCount: 0, isDraining: false };
  const refusals = new RefusalCounts({ warning() {} });
  new Admission({ inFlight, isCrowded: () => true, refusals }).queue({
    response: new ServerResponse(new IncomingMessage(new Socket())),
    caller: 'a',
    serve() {},
    respondOverloaded: () => refusedAfter.push(performance.now() - from),
  });
  vi.advanceTimersByTime(10_000);
  vi.useRealTimers();

  // The queue is looked through ten times a second.
  expect(refusedAfter).toEqual([900]);
});

describe('the limit of the queue', () => {
  test('follows the pace, so that the last queued request is admitted within 0.6 seconds', () => {
    const pace = new AdmissionPace();
    for (let time = 0; time <= 10_000; time += 100) {
      pace.count(100);
      pace.measure(time);
    }
    expect(pace.servableInTime).toBeCloseTo(600, 0);
  });

  test('is small while no request is admitted, and has its first value again when all are', () => {
    const pace = new AdmissionPace();
    const first = pace.servableInTime;
    for (let time = 0; time <= 10_000; time += 100) pace.measure(time);
    expect(pace.servableInTime).toBe(128);
    pace.reset();
    expect(pace.servableInTime).toBe(first);
  });
});

type Connection = Awaited<ReturnType<typeof connectTo>>;

const send = (connection: Connection, path: string) => connection.send(requestText(`GET ${path}`, {}));

async function ask(connection: Connection, path: string): Promise<string> {
  send(connection, path);
  return String((await connection.answer()).body);
}

/** Resolves when the server has received everything that was sent to it before, on connections that it reads. */
async function untilReceived(url: string): Promise<void> {
  for (let count = 0; count < 2; count += 1) {
    const connection = await connectTo(url);
    await ask(connection, '/probe');
    connection.close();
  }
}

type Turn = Pick<QueuedRequest, 'caller'> & { readonly name: string };

describe('the turns', () => {
  const of = (caller: string | undefined, name: string): Turn => ({ caller, name });

  const queued = (turn: Turn, socket = new Socket()): QueuedRequest => {
    const response = new ServerResponse(new IncomingMessage(socket));
    return { ...turn, response, serve() {}, respondOverloaded() {} };
  };

  function start(requests: readonly Turn[]) {
    const turns = new Turns();
    for (const request of requests) turns.add(queued(request));
    const next = () => (turns.takeNext() as Turn | undefined)?.name;
    return { turns, next };
  }

  test('serve one request of each caller in turn, in the order in which they came', () => {
    const { turns, next } = start([
      ...[1, 2, 3].map((count) => of('a', `a${count}`)),
      of(undefined, 'unverified 1'),
      of('b', 'b1'),
      of(undefined, 'unverified 2'),
    ]);
    expect([next(), next(), next(), next(), next(), next(), next()]).toEqual([
      ...['a1', 'b1', 'a2', 'unverified 1', 'a3', 'unverified 2'],
      undefined,
    ]);
    expect(turns.queued).toBe(0);
  });

  test('serve requests without a verified token in every second turn only, if a caller is queued', () => {
    const { next } = start([
      ...[1, 2, 3].map((count) => of(undefined, `unverified ${count}`)),
      ...[1, 2, 3].map((count) => of('a', `a${count}`)),
    ]);
    const order = Array.from({ length: 6 }, next);
    expect(order).toEqual(['a1', 'unverified 1', 'a2', 'a3', 'unverified 2', 'unverified 3']);
  });

  test('have room while fewer than 96 are queued, and then for the share of each caller in what can be served in time', () => {
    const { turns } = start([
      of('a', 'a1'),
      ...Array.from({ length: 94 }, (_, count) => of('b', `b${count}`)),
    ]);
    const hasRoom = (caller: string, limit: number) => turns.hasRoom(queued(of(caller, '')), limit);
    expect(hasRoom('b', 128)).toBe(true);
    turns.add(queued(of('b', 'b94')));
    expect([hasRoom('a', 128), hasRoom('b', 128), hasRoom('b', 192), hasRoom('c', 128)]).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });

  test('pause a caller that has its share of 48 queued requests, or half a share without a verified token', () => {
    const isPauseDue = (
      caller: string | undefined,
      count: number,
      others: readonly (string | undefined)[],
    ) => {
      const requests = Array.from({ length: count }, () => of(caller, ''));
      return start([...requests, ...others.map((other) => of(other, ''))]).turns.isPauseDue(caller);
    };
    expect([isPauseDue('a', 47, []), isPauseDue('a', 48, [])]).toEqual([false, true]);
    expect([isPauseDue('a', 23, ['b']), isPauseDue('a', 24, ['b'])]).toEqual([false, true]);
    expect([isPauseDue('a', 31, [undefined]), isPauseDue('a', 32, [undefined])]).toEqual([false, true]);
    expect([isPauseDue(undefined, 15, ['a']), isPauseDue(undefined, 16, ['a'])]).toEqual([false, true]);
  });

  test('have no room for the first request on a connection that was paused for too long', async () => {
    const { turns } = start([of('a', 'a1')]);
    const [late, other] = [new Socket(), new Socket()];
    turns.for('a').pause(late);
    await sleep(710);
    turns.for('a').pause(other);
    turns.resumeLate();
    const isRead = () => [late, other].map((socket) => !socket.isPaused());
    const hasRoom = () => turns.hasRoom(queued(of('a', ''), late), 128);
    expect([...isRead(), hasRoom(), hasRoom()]).toEqual([true, false, false, true]);
  });

  test('read a third of a share of 48 connections of each caller, one at least, until all are read', () => {
    const readAhead = (callers: number, times: number) => {
      const { turns } = start([]);
      const sockets = Array.from({ length: callers * 20 }, () => new Socket().resume());
      for (const [index, socket] of sockets.entries()) turns.for(`${index % callers}`).pause(socket);
      const canReadMore = Array.from({ length: times }, () => turns.readAhead()).at(-1);
      return [sockets.filter((socket) => socket.isPaused()).length, canReadMore];
    };
    expect([readAhead(1, 1), readAhead(1, 2)]).toEqual([
      [4, true],
      [0, false],
    ]);
    expect([readAhead(12, 1), readAhead(100, 1)]).toEqual([
      [12 * 18, true],
      [100 * 19, true],
    ]);
  });

  test('give up all requests that came before a time, of every caller', async () => {
    const { turns } = start([of('a', 'a1'), of('b', 'b1')]);
    await sleep(5);
    expect(turns.takeAllBefore(performance.now() - 1000)).toEqual([]);
    expect(turns.takeAllBefore(performance.now())).toHaveLength(2);
    expect([turns.queued, turns.readAhead(), turns.isEmpty]).toEqual([0, false, true]);
  });

  test('are bounded: callers beyond 256 share one, but not with requests without a verified token', () => {
    const callers = Array.from({ length: 256 }, (_, index) => of(`${index}`, `${index}`));
    const { turns } = start([...callers, of('x', 'x1'), of(undefined, 'unverified')]);
    expect(turns.find('x')).toBe(turns.find('y'));
    expect(turns.find('x')).not.toBe(turns.find(undefined));
  });
});

describe('the caller of a request', () => {
  const verified = (subject: string): VerifiedToken => ({
    principal: { subject, roles: [], claims: {} },
    exp: 0,
    key: {} as VerifiedToken['key'],
  });

  test('is the sub of its token, or unverified', () => {
    const newCaller = () => new Connections().of(new Socket());
    expect(newCaller().identify('token', verified('a'))).toBe('a');
    expect(newCaller().identify('token', undefined)).toBeUndefined();
    expect(newCaller().identify(undefined, undefined)).toBeUndefined();
  });

  test('with a token that is not verified yet is once the caller last verified on the connection', () => {
    const caller = new Connections().of(new Socket());
    const identify = (token: string | undefined, known?: VerifiedToken) => caller.identify(token, known);
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
  /** A third of 48, as in turns.ts. */
  const FEW = 16;
  /** Number of requests that this test admits at a time. */
  const INSIDE = 32;
  /** Number of times that all admitted requests have responses while others wait, and their connections are not read. */
  const TURNS = 5;
  const CALLERS = (TURNS + 2) * INSIDE + FEW / 2;
  /** As in turns.ts: milliseconds after which a paused connection is read in exchange for an answered one. */
  const PAUSE = 450;

  /**
   * A server that has received one request from each caller. It responds to the admitted requests only when the test
   * calls `answerAll()`.
   */
  async function start({ onTestFinished }: { onTestFinished(fn: () => unknown): void }) {
    const admitted: QueuedRequest[] = [];
    const received: string[] = [];
    let answered = 0;
    const inFlight = {
      isDraining: false,
      get servedCount() {
        return admitted.length;
      },
    };
    const admission = new Admission({
      inFlight,
      isCrowded: () => admitted.length >= INSIDE,
      refusals: new RefusalCounts({ warning() {} }),
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
        serve: () => void admitted.push(request),
        respondOverloaded: () => answer(response),
      };
      const isAdmitted = admission.admits(request);
      received.push(url);
      if (isAdmitted) request.serve();
      else admission.queue(request);
    });
    const { url } = await listen(server);
    onTestFinished(() => void server.close().closeAllConnections());
    const callers = await Promise.all(Array.from({ length: CALLERS }, () => connectTo(url)));
    for (const [index, caller] of callers.entries()) send(caller, `/first/${index}`);
    await until('all are received', () => received.length === CALLERS, { every: 1 });
    // Each caller sends its next request as soon as the first one has a response.
    const all = callers.map(async (caller, index) => {
      await caller.answer();
      send(caller, `/second/${index}`);
      return (await caller.answer()).body;
    });
    // If the test fails, it does not wait for them.
    void Promise.allSettled(all);

    /** Responds to the admitted requests, and waits until the next requests of their callers would be received. */
    async function answerAll(): Promise<void> {
      for (const request of admitted.splice(0)) {
        answer(request.response);
        admission.onAnswered(request);
      }
      await untilReceived(url);
    }

    return {
      admission,
      inFlight,
      received,
      answerAll,
      /** Resolves when both requests of each caller have their responses. */
      async untilAllAnswered() {
        while (answered < 2 * CALLERS) await answerAll();
        return Promise.all(all);
      },
    };
  }

  const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

  test.for([
    {
      title: 'reads few requests ahead of those whose connections stay read, in the order of the responses',
      pause: 0,
      next: [...upTo(FEW / 2), ...upTo(INSIDE).map((index) => TURNS * INSIDE + index)],
    },
    {
      title: 'reads a connection that was paused for long in exchange for an answered one',
      pause: PAUSE,
      next: upTo(INSIDE),
    },
  ])('$title', BY_TIME, async ({ pause, next }, context) => {
    const { received, answerAll, untilAllAnswered } = await start(context);
    for (let turn = 0; turn < TURNS; turn += 1) await answerAll();
    expect(received).toHaveLength(CALLERS);

    await sleep(pause);
    await answerAll();
    await until('they are received', () => received.length >= CALLERS + next.length, { every: 1 });
    expect(received.slice(CALLERS).sort()).toEqual(next.map((index) => `/second/${index}`).sort());
    expect(await untilAllAnswered()).toEqual(Array.from({ length: CALLERS }, () => 'ok'));
  });

  test('reads all connections in a drain', BY_TIME, async (context) => {
    const { admission, inFlight, received, answerAll, untilAllAnswered } = await start(context);
    await answerAll();
    await answerAll();
    expect(received).toHaveLength(CALLERS);

    inFlight.isDraining = true;
    admission.resumeAll();
    await answerAll();
    expect(received).toHaveLength(CALLERS + 3 * INSIDE);
    expect(await untilAllAnswered()).toEqual(Array.from({ length: CALLERS }, () => 'ok'));
  });
});
