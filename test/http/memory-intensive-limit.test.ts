import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { Admissions } from '../../host/admission/admission.ts';
import { MemoryIntensiveLimit } from '../../host/admission/limits.ts';
import type { QueuedRequest } from '../../host/admission/turns.ts';
import { connectTo, requestText } from '../stage/connection.ts';
import { listen } from '../stage/listening.ts';
import { until } from '../stage/until.ts';

/** As in limits.ts; in milliseconds. */
const MOST = 8;
const LONGEST = 20;

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

const nextPass = () => new Promise((resolve) => setImmediate(resolve));
const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

describe('the limit of memory-intensive requests', () => {
  test('is one in each pass of the event loop, and eight in all', async () => {
    // A request is counted for 20 ms at most, which a busy machine may take for these.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let freed = 0;
    const limit = new MemoryIntensiveLimit(
      () => false,
      () => {
        freed += 1;
      },
    );
    const responses = upTo(MOST).map(newResponse);
    for (const [index, response] of responses.entries()) {
      expect([limit.isFree, freed]).toEqual([true, index]);
      limit.begin(response);
      expect(limit.isFree).toBe(false);
      await nextPass();
    }

    expect([limit.isFree, freed]).toEqual([false, MOST]);
    responses[0]?.destroy();
    await nextPass();
    expect([limit.isFree, freed]).toEqual([true, MOST + 1]);
    for (const response of responses) response.destroy();
  });

  test('is one in 20 ms while other requests are queued', async () => {
    const limit = new MemoryIntensiveLimit(
      () => true,
      () => {},
    );
    const from = performance.now();
    limit.begin(newResponse());
    await nextPass();
    expect(limit.isFree).toBe(false);
    await until('the next one may begin', () => limit.isFree, { every: 1 });

    expect(performance.now() - from).toBeGreaterThan(LONGEST - 1);
  });
});

test.each([
  ['createUser', '', false],
  ['createUsers', '', true],
  ['getUser', '', false],
  ['listUsers', '', false],
  ['listUsers', 'limit=100', false],
  ['listUsers', 'sort=-created_at&limit=101', true],
  ['listUsers', 'email=limit%3D1000%40example.com', false],
  ['listChanges', 'wait=20&limit=100', false],
  ['listChanges', 'wait=20&limit=1000', true],
  ['listUserChanges', 'limit=1000', true],
] as const)('%s?%s: memory-intensive %j', (operationId, rawQueryString, isMemoryIntensive) => {
  const route = endpoints.map((endpoint) => endpoint.route).find((one) => one.operationId === operationId);
  const admissions = newAdmissions({ servedCount: 0, isDraining: false });

  expect(route).toBeDefined();
  expect(admissions.of(route, { rawQueryString })).toBe(
    admissions.of({ isMemoryIntensive: () => isMemoryIntensive }, { rawQueryString }),
  );
});

const newAdmissions = (inFlight: { servedCount: number; isDraining: boolean }) =>
  new Admissions({ database: { isCrowded: () => false }, inFlight, log: { warning() {} } });

/** A server that admits `/heavy/…` within their limit and `/light/…` at once. Admitted requests wait for `answer`. */
async function start({ onTestFinished }: { onTestFinished(fn: () => unknown): void }) {
  const admitted = new Map<string, QueuedRequest>();
  const refused: string[] = [];
  const inFlight = { servedCount: 0, isDraining: false };
  const admissions = newAdmissions(inFlight);
  const route = {
    isMemoryIntensive: ({ rawQueryString }: { rawQueryString: string }) => rawQueryString === 'heavy',
  };
  const admissionOf = (url: string) => admissions.of(route, { rawQueryString: url.split('/')[1] as string });
  const server = createServer(({ url = '' }, response) => {
    const serve = () => {
      inFlight.servedCount += 1;
      admitted.set(url, request);
    };
    const refuse = () => {
      refused.push(url);
      response.writeHead(503, { 'Content-Length': 0 }).end();
    };
    const request = { response, caller: 'a', serve, respondOverloaded: refuse };
    if (admissionOf(url).admits(request)) serve();
    else admissionOf(url).queue(request);
  });
  const { url } = await listen(server);
  onTestFinished(() => void server.close().closeAllConnections());

  return {
    refused,
    served: () => [...admitted.keys()],
    untilServed: (count: number) =>
      until(`${count} are admitted`, () => admitted.size >= count, { every: 1 }),
    async send(path: string) {
      const connection = await connectTo(url);
      connection.send(requestText(`GET ${path}`, {}));
      return connection;
    },
    answer(path: string) {
      const request = admitted.get(path);
      inFlight.servedCount -= 1;
      request?.response.writeHead(200, { 'Content-Length': 0 }).end();
      if (request) admissionOf(path).onAnswered(request);
    },
  };
}

const heavies = (count: number) => upTo(count).map((index) => `/heavy/${index}`);

test('a request that takes long frees its place: all are admitted before any has its response, eight at a time', async (context) => {
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
