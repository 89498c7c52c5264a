import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createAdmission } from '../../host/admission/admission.ts';
import { createAdmissionQueue } from '../../host/admission/admission-queue.ts';
import { createMemoryIntensiveLimit } from '../../host/admission/memory-intensive-limit.ts';
import { createPausedSockets } from '../../host/admission/paused-sockets.ts';
import { createRefusalBudget } from '../../host/admission/refusal-budget.ts';
import { createRefusalCounts } from '../../host/admission/refusal-counts.ts';
import { connectTo, written } from '../stage/connection.ts';
import { until } from '../stage/until.ts';

/** As in memory-intensive-limit.ts; in milliseconds. */
const MOST = 8;
const LONGEST = 20;

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('the line at the door', () => {
  const heavy = (name: string) => ({ name, isMemoryIntensive: true });
  const light = (name: string) => ({ name, isMemoryIntensive: false });

  test('is left in the order in which they came, the heavy in their turn only', () => {
    let isTurnOfHeavy = true;
    const line = createAdmissionQueue<{ name: string; isMemoryIntensive: boolean }>(() => isTurnOfHeavy);
    for (const arrival of [heavy('a'), light('b'), heavy('c'), heavy('d'), light('e')]) line.add(arrival);
    const take = () => line.takeNext()?.name;

    expect([take(), take()]).toEqual(['a', 'b']);
    isTurnOfHeavy = false;
    expect([line.hasNext, take(), line.hasNext, take(), line.length]).toEqual([
      true,
      'e',
      false,
      undefined,
      2,
    ]);
    isTurnOfHeavy = true;
    expect([take(), take(), take(), line.length]).toEqual(['c', 'd', undefined, 0]);
  });

  test('gives up all who came before a moment', async () => {
    const line = createAdmissionQueue<{ name: string; isMemoryIntensive: boolean }>(() => false);
    for (const arrival of [heavy('a'), light('b')]) line.add(arrival);
    await sleep(5);
    const moment = performance.now();
    for (const arrival of [light('c'), heavy('d')]) line.add(arrival);

    expect(line.takeThoseBefore(moment).map(({ name }) => name)).toEqual(['b', 'a']);
    expect(line.takeThoseBefore(moment)).toEqual([]);
    expect(line.length).toBe(2);
  });
});

describe('of the turns', () => {
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

  test('one is free in each turn of the event loop, and eight in all', async () => {
    let told = 0;
    const turns = createMemoryIntensiveLimit(() => {
      told += 1;
    });
    const responses = upTo(MOST).map(() => new ServerResponse(new IncomingMessage(new Socket())));
    for (const [index, response] of responses.entries()) {
      expect([turns.isFree, told]).toEqual([true, index]);
      turns.begin(response);
      expect(turns.isFree).toBe(false);
      await nextTurn();
    }

    expect([turns.isFree, told]).toEqual([false, MOST]);
    responses[0]?.destroy();
    await nextTurn();
    expect([turns.isFree, told]).toEqual([true, MOST + 1]);
    for (const response of responses) response.destroy();
  });
});

/** A server whose door lets in `/heavy/…` in turns and `/light/…` at once; what it lets in waits for `answer`. */
async function start({ onTestFinished }: { onTestFinished(fn: () => unknown): void }) {
  const letIn = new Map<string, ServerResponse>();
  const refused: string[] = [];
  let inFlight = 0;
  const door = createAdmission({
    inFlight: () => inFlight,
    isDatabaseCrowded: () => false,
    budget: createRefusalBudget(),
    unread: createPausedSockets(),
    counts: createRefusalCounts({ warning() {} }),
  });
  const server = createServer(({ url = '' }, response) => {
    inFlight += 1;
    const isMemoryIntensive = url.startsWith('/heavy');
    const serve = () => void letIn.set(url, response);
    const refuse = () => {
      refused.push(url);
      inFlight -= 1;
      response.writeHead(503, { 'Content-Length': 0 }).end();
    };
    if (door.admits(response, isMemoryIntensive)) serve();
    else door.queue({ response, isMemoryIntensive, serve, refuse });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    refused,
    served: () => [...letIn.keys()],
    untilServed: (count: number) => until(`${count} are let in`, () => letIn.size >= count, { every: 1 }),
    async send(path: string) {
      const connection = await connectTo(url);
      connection.send(written(`GET ${path}`, [['Host', 'a']]));
      return connection;
    },
    answer(path: string) {
      const response = letIn.get(path);
      inFlight -= 1;
      response?.writeHead(200, { 'Content-Length': 0 }).end();
      if (response) door.onAnswered(response);
    },
  };
}

const heavies = (count: number) => upTo(count).map((index) => `/heavy/${index}`);

test('whoever is held up for long makes way: all are let in before any is answered, eight at a time', async (context) => {
  const { send, served, untilServed } = await start(context);
  const from = performance.now();
  for (const path of heavies(3 * MOST)) await send(path);
  await untilServed(3 * MOST);

  expect(performance.now() - from).toBeGreaterThan(2 * LONGEST - 1);
  expect(served()).toEqual(heavies(3 * MOST));
});

test('an answer makes way once, also when it comes after its time', async (context) => {
  const { send, answer, untilServed, served } = await start(context);
  const paths = heavies(MOST);
  for (const path of paths) await send(path);
  await untilServed(MOST);
  await sleep(2 * LONGEST);
  for (const path of paths) answer(path);
  await sleep(LONGEST);

  // Were each turn given back twice, all of these would be let in at once.
  const more = upTo(2 * MOST).map((index) => `/heavy/more/${index}`);
  const connections = await Promise.all(more.map(send));
  await untilServed(MOST + 1);
  expect(served().length).toBeLessThanOrEqual(2 * MOST);
  await untilServed(3 * MOST);
  for (const path of more) answer(path);
  const answers = await Promise.all(connections.map((connection) => connection.answer()));
  expect(answers.map(({ status }) => status)).toEqual(more.map(() => 200));
});

test('others do not wait for the heavy', async (context) => {
  const { send, answer, untilServed, served } = await start(context);
  // Each keeps its turn for 20 ms.
  for (const path of heavies(40 * MOST)) await send(path);
  await untilServed(MOST);
  await send('/light/1');
  await until('it is let in', () => served().includes('/light/1'), { every: 1 });

  expect(served().length).toBeLessThan(40 * MOST);
  answer('/light/1');
});
