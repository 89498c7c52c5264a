import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Admission } from '../../host/admission/admission.ts';
import { AdmissionQueue, MemoryIntensiveLimit } from '../../host/admission/admission-queue.ts';
import { RefusalBudget, RefusalCounts } from '../../host/admission/refusals.ts';
import { connectTo, written } from '../stage/connection.ts';
import { until } from '../stage/until.ts';

/** As in admission-queue.ts; in milliseconds. */
const MOST = 8;
const LONGEST = 20;

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

describe('the admission queue', () => {
  const heavy = (name: string) => ({ name, isMemoryIntensive: true });
  const light = (name: string) => ({ name, isMemoryIntensive: false });
  const newQueue = () => new AdmissionQueue<{ name: string; isMemoryIntensive: boolean }>(() => {});

  test('is left in the order in which requests came, by memory-intensive ones only within their limit', async () => {
    const queue = newQueue();
    for (const request of [heavy('a'), light('b'), heavy('c'), heavy('d'), light('e')]) queue.add(request);
    const take = () => queue.takeNext()?.name;

    expect([take(), take()]).toEqual(['a', 'b']);
    queue.memoryIntensive.begin(newResponse());
    expect([queue.hasNext, take(), queue.hasNext, take(), queue.length]).toEqual([
      true,
      'e',
      false,
      undefined,
      2,
    ]);
    await nextTurn();
    expect([take(), take(), take(), queue.length]).toEqual(['c', 'd', undefined, 0]);
  });

  test('gives up all requests that came before a time', async () => {
    const queue = newQueue();
    for (const request of [heavy('a'), light('b')]) queue.add(request);
    await sleep(5);
    const time = performance.now();
    for (const request of [light('c'), heavy('d')]) queue.add(request);

    expect(queue.takeAllBefore(time).map(({ name }) => name)).toEqual(['b', 'a']);
    expect(queue.takeAllBefore(time)).toEqual([]);
    expect(queue.length).toBe(2);
  });
});

describe('the limit of memory-intensive requests', () => {
  test('is one in each turn of the event loop, and eight in all', async () => {
    let freed = 0;
    const limit = new MemoryIntensiveLimit(() => {
      freed += 1;
    });
    const responses = upTo(MOST).map(newResponse);
    for (const [index, response] of responses.entries()) {
      expect([limit.isFree, freed]).toEqual([true, index]);
      limit.begin(response);
      expect(limit.isFree).toBe(false);
      await nextTurn();
    }

    expect([limit.isFree, freed]).toEqual([false, MOST]);
    responses[0]?.destroy();
    await nextTurn();
    expect([limit.isFree, freed]).toEqual([true, MOST + 1]);
    for (const response of responses) response.destroy();
  });
});

/** A server that admits `/heavy/…` within their limit and `/light/…` at once. Admitted requests wait for `answer`. */
async function start({ onTestFinished }: { onTestFinished(fn: () => unknown): void }) {
  const admitted = new Map<string, ServerResponse>();
  const refused: string[] = [];
  let inFlight = 0;
  const admission = new Admission({
    inFlight: {
      get activeCount() {
        return inFlight;
      },
    },
    isDatabaseCrowded: () => false,
    budget: new RefusalBudget(),
    counts: new RefusalCounts({ warning() {} }),
  });
  const server = createServer(({ url = '' }, response) => {
    inFlight += 1;
    const isMemoryIntensive = url.startsWith('/heavy');
    const serve = () => void admitted.set(url, response);
    const refuse = () => {
      refused.push(url);
      inFlight -= 1;
      response.writeHead(503, { 'Content-Length': 0 }).end();
    };
    const request = { response, isMemoryIntensive, serve, refuse };
    if (admission.admits(request)) serve();
    else admission.queue(request);
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
    served: () => [...admitted.keys()],
    untilServed: (count: number) =>
      until(`${count} are admitted`, () => admitted.size >= count, { every: 1 }),
    async send(path: string) {
      const connection = await connectTo(url);
      connection.send(written(`GET ${path}`, [['Host', 'a']]));
      return connection;
    },
    answer(path: string) {
      const response = admitted.get(path);
      inFlight -= 1;
      response?.writeHead(200, { 'Content-Length': 0 }).end();
      if (response) admission.onAnswered(response);
    },
  };
}

const heavies = (count: number) => upTo(count).map((index) => `/heavy/${index}`);

test('a request that takes long frees its place: all are admitted before any is answered, eight at a time', async (context) => {
  const { send, served, untilServed } = await start(context);
  const from = performance.now();
  for (const path of heavies(3 * MOST)) await send(path);
  await untilServed(3 * MOST);

  expect(performance.now() - from).toBeGreaterThan(2 * LONGEST - 1);
  expect(served()).toEqual(heavies(3 * MOST));
});

test('a response frees a place once, also when it comes after its time', async (context) => {
  const { send, answer, untilServed, served } = await start(context);
  const paths = heavies(MOST);
  for (const path of paths) await send(path);
  await untilServed(MOST);
  await sleep(2 * LONGEST);
  for (const path of paths) answer(path);
  await sleep(LONGEST);

  // If each place were freed twice, all of these would be admitted at once.
  const more = upTo(2 * MOST).map((index) => `/heavy/more/${index}`);
  const connections = await Promise.all(more.map(send));
  await untilServed(MOST + 1);
  expect(served().length).toBeLessThanOrEqual(2 * MOST);
  await untilServed(3 * MOST);
  for (const path of more) answer(path);
  const answers = await Promise.all(connections.map((connection) => connection.answer()));
  expect(answers.map(({ status }) => status)).toEqual(more.map(() => 200));
});

test('other requests do not wait for memory-intensive ones', async (context) => {
  const { send, answer, untilServed, served } = await start(context);
  // Each keeps its place for 20 ms.
  for (const path of heavies(40 * MOST)) await send(path);
  await untilServed(MOST);
  await send('/light/1');
  await until('it is admitted', () => served().includes('/light/1'), { every: 1 });

  expect(served().length).toBeLessThan(40 * MOST);
  answer('/light/1');
});
