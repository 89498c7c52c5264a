import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextPass, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { AcceptQueue } from '../../host/admission/accept-queue.ts';
import { Admission } from '../../host/admission/admission.ts';
import { AdmissionPace } from '../../host/admission/limits.ts';
import { RefusalCounts } from '../../host/admission/refusals.ts';
import { type QueuedRequest, Turns } from '../../host/admission/turns.ts';
import { Connections } from '../../host/sockets/connections.ts';
import { simulateAdmissionTime } from '../stage/admission-time.ts';
import { connectTo, requestText } from '../stage/connection.ts';
import { listen } from '../stage/listening.ts';
import { until } from '../stage/until.ts';

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** A request of the caller that its name begins with: a2 is one of a, and unverified 2 has no verified token. */
const requestOf = (name: string, socket = new Socket()) => ({
  name,
  caller: name.startsWith('unverified') ? undefined : name.replace(/\d+$/, ''),
  response: new ServerResponse(new IncomingMessage(socket)),
  serve() {},
  respondOverloaded() {},
});

afterEach(() => {
  vi.useRealTimers();
});

test('refusals are logged once a second, each time those since the last time', () => {
  const lines: unknown[] = [];
  const refusals = new RefusalCounts({ warning: (event, fields) => lines.push({ event, ...fields }) });
  vi.useFakeTimers();
  for (let count = 0; count < 8; count += 1) {
    refusals.add('no_room', 'a');
    vi.advanceTimersByTime(400);
  }
  vi.advanceTimersByTime(1000);

  expect(lines).toEqual([3, 3, 2].map((count) => ({ event: 'requests_refused', count, caller: 'known' })));
});

function createAdmission({ isCrowded = false, acceptQueue = new AcceptQueue() }): Admission {
  const refusals = new RefusalCounts({ warning() {} });
  return new Admission({
    inFlight: { servedCount: 0, isDraining: false },
    isCrowded: () => isCrowded,
    refusals,
    acceptQueue,
  });
}

test('a request that is queued for more than 0.85 seconds is refused', () => {
  vi.useFakeTimers();
  const from = performance.now();
  const refusedAfter: number[] = [];
  const admission = createAdmission({ isCrowded: true });
  admission.queue({
    ...requestOf('a1'),
    respondOverloaded: () => refusedAfter.push(performance.now() - from),
  });
  vi.advanceTimersByTime(10_000);

  // The queue is looked through ten times a second.
  expect(refusedAfter).toEqual([900]);
  // Nothing was admitted in this time, but the pace begins anew: 600 requests have room.
  const respondOverloaded = vi.fn();
  for (const name of upTo(600)) admission.queue({ ...requestOf(`a${name}`), respondOverloaded });
  expect(respondOverloaded).not.toHaveBeenCalled();
});

test('while the accept queue is long, requests are queued until the end of their connection is known, and passes admit nothing for 8 ms', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const acceptQueue = new AcceptQueue();
  const admission = createAdmission({ acceptQueue });
  const isAdmittedAfter = async (milliseconds: number, passes = 1) => {
    vi.advanceTimersByTime(milliseconds);
    for (let pass = 0; pass < passes; pass += 1) {
      acceptQueue.onConnection();
      await nextPass();
    }
    return admission.admits(requestOf('a1'));
  };
  // A process that stands still is not a long queue.
  expect([await isAdmittedAfter(0), await isAdmittedAfter(1000, 6)]).toEqual([true, true]);
  await nextPass();
  expect([await isAdmittedAfter(0, 8), await isAdmittedAfter(49), await isAdmittedAfter(1)]).toEqual([
    true,
    true,
    false,
  ]);
  const ends: string[] = [];
  const queue = (name: string, socket = new Socket()) => {
    const serve = () => ends.push(name);
    admission.queue({
      ...requestOf('a1', socket),
      serve,
      respondOverloaded: () => ends.push(`${name} refused`),
    });
  };
  const leaving = new Socket().resume();
  queue('first');
  queue('second', leaving);
  setImmediate(() => leaving.push(null));
  await isAdmittedAfter(0, 5);
  expect(ends).toEqual(['first', 'second refused']);
  queue('third');
  await isAdmittedAfter(7, 5);
  expect(ends).toHaveLength(2);
  await isAdmittedAfter(1, 2);
  expect(ends).toContain('third');
  await nextPass();
  expect(await isAdmittedAfter(0)).toBe(true);
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

  test('is small while no request is admitted', () => {
    const pace = new AdmissionPace();
    for (let time = 0; time <= 10_000; time += 100) pace.measure(time);
    expect(pace.servableInTime).toBe(128);
  });
});

describe('the turns', () => {
  function start(names: readonly string[]): Turns {
    const turns = new Turns();
    for (const name of names) turns.add(requestOf(name));
    return turns;
  }

  const take = (turns: Turns, count: number) =>
    upTo(count).map(() => (turns.takeNext() as ReturnType<typeof requestOf> | undefined)?.name);

  test('serve one request of each caller in turn, in the order in which they came', () => {
    const turns = start(['a1', 'a2', 'a3', 'unverified 1', 'b1', 'unverified 2']);
    const order = ['a1', 'b1', 'a2', 'unverified 1', 'a3', 'unverified 2', undefined];
    expect(take(turns, 7)).toEqual(order);
    expect(turns.queued).toBe(0);
  });

  test('serve requests without a verified token in every second turn only, if a caller is queued', () => {
    const turns = start(['unverified 1', 'unverified 2', 'unverified 3', 'a1', 'a2', 'a3']);
    const order = ['a1', 'unverified 1', 'a2', 'a3', 'unverified 2', 'unverified 3'];
    expect(take(turns, 6)).toEqual(order);
  });

  test('have room while fewer than 96 are queued, and then for the share of each caller in what can be served in time', () => {
    const turns = start(['a1', ...upTo(94).map((count) => `b${count}`)]);
    const hasRoom = (caller: string, limit: number) => turns.hasRoom(requestOf(caller), limit);
    expect(hasRoom('b', 128)).toBe(true);
    turns.add(requestOf('b94'));
    expect(hasRoom('b', 128)).toBe(false);
    expect([hasRoom('a', 128), hasRoom('b', 192), hasRoom('c', 128)]).toEqual([true, true, true]);
  });

  test('pause a caller that has its share of 48 queued requests, or half a share without a verified token', () => {
    const isPauseDue = (caller: string, count: number, ...others: readonly string[]) =>
      start([...upTo(count).map(() => caller), ...others]).isPauseDue(requestOf(caller).caller);
    expect([isPauseDue('a', 47), isPauseDue('a', 48)]).toEqual([false, true]);
    expect([isPauseDue('a', 23, 'b'), isPauseDue('a', 24, 'b')]).toEqual([false, true]);
    expect([isPauseDue('a', 31, 'unverified'), isPauseDue('a', 32, 'unverified')]).toEqual([false, true]);
    expect([isPauseDue('unverified', 15, 'a'), isPauseDue('unverified', 16, 'a')]).toEqual([false, true]);
  });

  test('have no room for the first request on a connection that was paused for too long', () => {
    vi.useFakeTimers();
    const turns = start(['a1']);
    const [late, other] = [new Socket(), new Socket()];
    turns.for('a').pause(late);
    vi.advanceTimersByTime(701);
    turns.for('a').pause(other);
    turns.resumeLate();
    expect([late.isPaused(), other.isPaused()]).toEqual([false, true]);
    const hasRoom = () => turns.hasRoom(requestOf('a2', late), 128);
    expect([hasRoom(), hasRoom()]).toEqual([false, true]);
  });

  test('read a third of a share of 48 connections of each caller, one at least, until all are read', () => {
    const readAhead = (callers: number, times: number) => {
      const turns = new Turns();
      const sockets = upTo(callers * 20).map(() => new Socket().resume());
      for (const [index, socket] of sockets.entries()) turns.for(`${index % callers}`).pause(socket);
      const canReadMore = upTo(times)
        .map(() => turns.readAhead())
        .at(-1);
      return [sockets.filter((socket) => socket.isPaused()).length, canReadMore];
    };
    expect(readAhead(1, 1)).toEqual([4, true]);
    expect(readAhead(1, 2)).toEqual([0, false]);
    expect(readAhead(12, 1)).toEqual([12 * 18, true]);
    expect(readAhead(100, 1)).toEqual([100 * 19, true]);
  });

  test('give up all requests that came before a time, of every caller', () => {
    vi.useFakeTimers();
    const turns = start(['a1', 'b1']);
    vi.advanceTimersByTime(1);
    expect(turns.takeAllBefore(performance.now() - 1000)).toEqual([]);
    expect(turns.takeAllBefore(performance.now())).toHaveLength(2);
    expect([turns.queued, turns.readAhead(), turns.isEmpty]).toEqual([0, false, true]);
  });

  test('are bounded: callers beyond 256 share one, but not with requests without a verified token', () => {
    const turns = start([...upTo(256).map((index) => `caller ${index}.`), 'x1', 'unverified']);
    expect(turns.find('x')).toBe(turns.find('y'));
    expect(turns.find('x')).not.toBe(turns.find(undefined));
  });
});

describe('the caller of a request', () => {
  test('is the sub of its token or, with a token that is not verified yet, once the caller last verified on the connection', () => {
    const caller = new Connections().of(new Socket());
    const requests: [token: string | undefined, subject: string | undefined, caller: string | undefined][] = [
      ['token', undefined, undefined],
      ['first', 'a', 'a'],
      [undefined, undefined, undefined],
      ['second', undefined, 'a'],
      ['second', undefined, undefined],
      ['second', 'a', 'a'],
      ['third', undefined, 'a'],
      ['other', 'b', 'b'],
      ['fourth', undefined, 'b'],
      ['fifth', undefined, undefined],
      ['fourth', undefined, undefined],
      ['fifth', undefined, undefined],
    ];
    const identified = requests.map(([token, subject]) =>
      caller.identify(token, subject === undefined ? undefined : { subject, roles: [], claims: {} }),
    );
    expect(identified).toEqual(requests.map(([, , expected]) => expected));
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
  async function start() {
    simulateAdmissionTime();
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
      acceptQueue: new AcceptQueue(),
    });
    const answer = (response: ServerResponse) => {
      answered += 1;
      response.setHeader('Content-Length', 2).end('ok');
    };
    const sockets: Socket[] = [];
    const server = createServer(({ url = '' }, response) => {
      if (url === '/probe') return void response.end();
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
    server.on('connection', (socket: Socket) => sockets.push(socket));
    const { url } = await listen(server);
    onTestFinished(() => void server.close().closeAllConnections());
    const callers = await Promise.all(upTo(CALLERS).map(() => connectTo(url)));
    for (const [index, caller] of callers.entries()) caller.send(requestText(`GET /first/${index}`, {}));
    await until('all are received', () => received.length === CALLERS, { every: 1 });
    // Each caller sends its next request as soon as the first one has a response.
    const all = callers.map(async (caller, index) => {
      await caller.answer();
      caller.send(requestText(`POST /second/${index}`, {}, '{}'));
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
      const headers = { connection: 'close' };
      for (let count = 0; count < 2; count += 1) await fetch(`${url}/probe`, { headers });
    }

    return {
      admission,
      inFlight,
      received,
      pausedCount: () => sockets.filter((socket) => socket.isPaused()).length,
      answerAll,
      /** Resolves when both requests of each caller have their responses. */
      async untilAllAnswered() {
        while (answered < 2 * CALLERS) await answerAll();
        return Promise.all(all);
      },
    };
  }

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
  ])('$title', async ({ pause, next }) => {
    const { received, answerAll, untilAllAnswered } = await start();
    for (let turn = 0; turn < TURNS; turn += 1) await answerAll();
    expect(received).toHaveLength(CALLERS);

    vi.advanceTimersByTime(pause);
    // After a timer, the event loop reads connections before it begins a pass.
    await sleep(1);
    await answerAll();
    await until('they are received', () => received.length >= CALLERS + next.length, { every: 1 });
    expect(received.slice(CALLERS).sort()).toEqual(next.map((index) => `/second/${index}`).sort());
    expect(await untilAllAnswered()).toEqual(upTo(CALLERS).map(() => 'ok'));
  });

  test('refuses the request of a connection that was paused for too long, and pauses it again, also after a body', async () => {
    const { received, pausedCount, answerAll, untilAllAnswered } = await start();
    await answerAll();
    expect([received.length, pausedCount()]).toEqual([CALLERS, INSIDE]);
    vi.advanceTimersByTime(800);
    await until('they are received', () => received.length === CALLERS + INSIDE, { every: 1 });
    await until('they are paused', () => pausedCount() === INSIDE, { every: 1 });
    expect(await untilAllAnswered()).toEqual(upTo(CALLERS).map(() => 'ok'));
  });

  test('reads all connections in a drain', async () => {
    const { admission, inFlight, received, answerAll, untilAllAnswered } = await start();
    await answerAll();
    await answerAll();
    expect(received).toHaveLength(CALLERS);

    inFlight.isDraining = true;
    admission.resumeAll();
    await answerAll();
    expect(received).toHaveLength(CALLERS + 3 * INSIDE);
    expect(await untilAllAnswered()).toEqual(upTo(CALLERS).map(() => 'ok'));
  });
});
