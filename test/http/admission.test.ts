import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { Admission } from '../../host/admission/admission.ts';
import { AdmissionPace } from '../../host/admission/admission-queue.ts';
import { PausedSockets } from '../../host/admission/paused-sockets.ts';
import { RefusalBudget, RefusalCounts } from '../../host/admission/refusals.ts';
import { connectTo, written } from '../stage/connection.ts';
import { until } from '../stage/until.ts';

/** Admission judges by the time that the machine gives: a busy one takes other decisions than those expected here. */
const BY_TIME = { retry: 2 };

describe('the budget of refusals', () => {
  /** A budget, and a clock of its own in milliseconds. */
  function start() {
    let time = 0;
    const budget = new RefusalBudget(() => time);
    return {
      budget,
      pass(milliseconds: number) {
        time += milliseconds;
      },
      /** Refuses with so much work. */
      refuse: (milliseconds: number) =>
        budget.pay({
          refuse() {
            time += milliseconds;
          },
        }),
    };
  }

  test('is a fifth of the time, whatever they cost', () => {
    const { budget, pass, refuse } = start();
    let spent = 0;
    while (budget.affordable() >= 1) refuse(0.02);
    for (let millisecond = 0; millisecond < 10_000; millisecond += 1) {
      while (budget.affordable() >= 1) {
        refuse(0.02);
        // The same again has gone into receiving it.
        pass(0.02);
        spent += 0.04;
      }
      pass(1);
    }
    expect(spent / (10_000 + spent)).toBeCloseTo(0.2, 2);
  });

  test('pays off a debt before it pays for more', () => {
    const { budget, pass, refuse } = start();
    for (let count = 0; count < 100; count += 1) refuse(0.2);
    pass(70);
    expect(budget.affordable()).toBeLessThan(1);
    pass(20);
    expect(budget.affordable()).toBeGreaterThan(1);
  });
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

describe('from a connection left unread nothing is received until it is read again', () => {
  /** Three connections, of which two are left unread, the one to `/1` first, with a request each. */
  async function start(context: { onTestFinished(fn: () => unknown): void }) {
    const paused = new PausedSockets();
    const received: string[] = [];
    const server = createServer(({ url = '', socket }, response) => {
      if (url !== '/probe') received.push(url);
      response.setHeader('Content-Length', 2).end('ok');
      if (url.startsWith('/leave')) response.once('close', () => paused.pause(socket));
    });
    const url = await listen(server, context);
    const [first, second] = [await connectTo(url), await connectTo(url)];
    await ask(first, '/leave/1');
    await ask(second, '/leave/2');
    await untilReceived(url);
    expect(paused.size).toBe(2);
    send(first, '/1');
    send(second, '/2');
    await untilReceived(url);
    expect(received.splice(0)).toEqual(['/leave/1', '/leave/2']);
    return { paused, received, first, second };
  }

  test('the last one first, where whoever has waited least is to be served', async (context) => {
    const { paused, received, first, second } = await start(context);
    paused.resumeLast(1);
    expect((await second.answer()).body).toBe('ok');
    paused.resumeLast(1);
    expect((await first.answer()).body).toBe('ok');
    expect(received).toEqual(['/2', '/1']);
    expect(paused.size).toBe(0);
  });

  test('the first one first, where all are', async (context) => {
    const { paused, received, first, second } = await start(context);
    paused.resumeFirst(1);
    expect((await first.answer()).body).toBe('ok');
    paused.resumeFirst(1);
    expect((await second.answer()).body).toBe('ok');
    expect(received).toEqual(['/1', '/2']);
    expect(paused.size).toBe(0);
  });
});

test('a connection with several answers is left once', async (context) => {
  const paused = new PausedSockets();
  const server = createServer((request, response) => {
    response.setHeader('Content-Length', 2).end('ok');
    if (request.url !== '/probe') response.once('close', () => paused.pause(request.socket));
  });
  const url = await listen(server, context);
  const connection = await connectTo(url);
  send(connection, '/1');
  send(connection, '/2');
  await connection.answer();
  await connection.answer();
  await untilReceived(url);
  expect(paused.size).toBe(1);
});

describe('admission', () => {
  /** As in paused-sockets.ts. */
  const FEW = 16;
  /** So many are let in by the database of this test. */
  const INSIDE = 64;
  /** So often so many are answered while many wait, and their connections left. */
  const TURNS = 5;
  const CALLERS = (TURNS + 2) * INSIDE + FEW / 2;
  /** One of so many is left later: 0.9 of the room at first is to be served while the unread connections have their turn. */
  const EXCHANGE = Math.ceil((0.9 * 4800) / (TURNS * INSIDE));

  /** A server whose callers have a request each, all of them received; it answers what is let in when it is told to. */
  async function start(context: { onTestFinished(fn: () => unknown): void }) {
    const admitted: ServerResponse[] = [];
    const received: string[] = [];
    let answered = 0;
    const paused = new PausedSockets();
    const admission = new Admission({
      inFlight: {
        get activeCount() {
          return received.length - answered;
        },
      },
      isDatabaseCrowded: () => admitted.length >= INSIDE,
      budget: new RefusalBudget(),
      paused,
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
        isMemoryIntensive: false,
        serve: () => void admitted.push(response),
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
      for (const response of admitted.splice(0)) {
        answer(response);
        admission.onAnswered(response);
      }
      await untilReceived(url);
    }

    return {
      admission,
      paused,
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
      const { paused, received, answerAll, untilAllAnswered } = await start(context);
      for (let turn = 0; turn < TURNS; turn += 1) await answerAll();
      expect(received).toHaveLength(CALLERS);
      expect(paused.size).toBe(TURNS * INSIDE);

      await answerAll();
      const read = Array.from({ length: FEW / 2 }, (_, index) => index);
      const staying = Array.from({ length: INSIDE }, (_, index) => TURNS * INSIDE + index);
      const next = [...read, ...staying.filter((_, index) => index % EXCHANGE !== EXCHANGE - 1)];
      await until('they are received', () => received.length >= CALLERS + next.length, { every: 1 });
      expect(received.slice(CALLERS).sort()).toEqual(next.map((index) => `/second/${index}`).sort());
      expect(await untilAllAnswered()).toEqual(Array.from({ length: CALLERS }, () => 'ok'));
    },
  );

  test('leaves nothing unread in a drain', BY_TIME, async (context) => {
    const { admission, paused, received, answerAll, untilAllAnswered } = await start(context);
    await answerAll();
    await answerAll();
    expect(paused.size).toBe(2 * INSIDE);

    admission.resumeAll();
    await answerAll();
    expect(paused.size).toBe(0);
    expect(received).toHaveLength(CALLERS + 3 * INSIDE);
    expect(await untilAllAnswered()).toEqual(Array.from({ length: CALLERS }, () => 'ok'));
  });
});
