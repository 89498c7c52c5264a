import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextPass } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { Admissions } from '../../host/admission/admissions.ts';
import { MemoryIntensiveLimit } from '../../host/admission/limits.ts';
import { connectAndSend, requestText } from '../stage/connection.ts';
import { listen } from '../stage/listening.ts';
import { until } from '../stage/until.ts';

/** As in limits.ts; in milliseconds. */
const MOST = 8;
const LONGEST = 20;

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

describe('the limit of memory-intensive requests', () => {
  /** A request is counted for 20 ms at most, which a busy machine may take for the test. */
  function stopClock(): void {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
  }

  test('is one in each pass of the event loop, and eight in all', async () => {
    stopClock();
    const onFree = vi.fn();
    const limit = new MemoryIntensiveLimit(() => 0, onFree);
    const responses = upTo(MOST).map(newResponse);
    for (const [index, response] of responses.entries()) {
      expect(limit.isFree).toBe(true);
      expect(onFree).toHaveBeenCalledTimes(index);
      limit.begin(response);
      expect(limit.isFree).toBe(false);
      await nextPass();
    }

    expect(limit.isFree).toBe(false);
    expect(onFree).toHaveBeenCalledTimes(MOST);
    responses[0]?.destroy();
    await nextPass();
    expect(limit.isFree).toBe(true);
    expect(onFree).toHaveBeenCalledTimes(MOST + 1);
    for (const response of responses) response.destroy();
  });

  test('frees a place once for each response, also when the response comes after its time', async () => {
    stopClock();
    const limit = new MemoryIntensiveLimit(() => 0, vi.fn());
    async function beginAll() {
      const responses = upTo(MOST).map(newResponse);
      for (const response of responses) {
        limit.begin(response);
        await nextPass();
      }
      // If a place had been freed twice, there would be room for more.
      expect(limit.isFree).toBe(false);
      return responses;
    }

    const late = await beginAll();
    vi.advanceTimersByTime(LONGEST);
    for (const response of late) response.destroy();
    await nextPass();
    for (const response of await beginAll()) response.destroy();
    await nextPass();
    vi.advanceTimersByTime(LONGEST);
    await beginAll();
  });

  test('is one in 20 ms if other requests are queued in the next pass', async () => {
    const limit = new MemoryIntensiveLimit(vi.fn(() => 0).mockReturnValueOnce(LONGEST), vi.fn());
    const from = performance.now();
    limit.begin(newResponse());
    await nextPass();
    expect(limit.isFree).toBe(false);
    await until('the next one may begin', () => limit.isFree, { every: 1 });

    expect(performance.now() - from).toBeGreaterThan(LONGEST - 1);
  });
});

test('one begins in 100 ms while the accept queue is long, and at once when it no longer is', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const admissions = newAdmissions({ servedCount: 0, isDraining: false });
  const admission = admissions.of({ isMemoryIntensive: () => true }, { rawQueryString: '' });
  const serve = vi.fn();
  const servedAfter = async (milliseconds: number, isAccepting = true) => {
    vi.advanceTimersByTime(milliseconds);
    for (let pass = 0; pass < 5; pass += 1) {
      if (isAccepting) admissions.acceptQueue.onConnection();
      await nextPass();
    }
    return serve.mock.calls.length;
  };
  await servedAfter(0);
  await servedAfter(50);
  for (const response of upTo(3).map(newResponse))
    admission.queue({ response, caller: 'a', serve, respondOverloaded() {} });
  expect([await servedAfter(0), await servedAfter(99), await servedAfter(1)]).toEqual([1, 1, 2]);
  expect([await servedAfter(0, false), await servedAfter(1, false)]).toEqual([2, 3]);
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

/** A server that admits `/heavy/…` within their limit and `/light/…` at once, and responds to none of them. */
async function start() {
  const served: string[] = [];
  const inFlight = { servedCount: 0, isDraining: false };
  const admissions = newAdmissions(inFlight);
  const admissionOf = (url: string) =>
    admissions.of({ isMemoryIntensive: () => url.startsWith('/heavy/') }, { rawQueryString: '' });
  const server = createServer(({ url = '' }, response) => {
    const serve = () => {
      inFlight.servedCount += 1;
      served.push(url);
    };
    const respondOverloaded = () => response.writeHead(503, { 'Content-Length': 0 }).end();
    const request = { response, caller: 'a', serve, respondOverloaded };
    if (admissionOf(url).admits(request)) serve();
    else admissionOf(url).queue(request);
  });
  const { url } = await listen(server);
  onTestFinished(() => void server.close().closeAllConnections());

  return {
    /** The paths of the admitted requests. */
    served,
    untilServed: (count: number) =>
      until(`${count} are admitted`, () => served.length >= count, { every: 1 }),
    send: (path: string) => connectAndSend(url, requestText(`GET ${path}`, {})),
  };
}

const heavies = (count: number) => upTo(count).map((index) => `/heavy/${index}`);

test('a request that takes long frees its place: all are admitted before any has its response, eight at a time', async () => {
  const { send, served, untilServed } = await start();
  const from = performance.now();
  for (const path of heavies(3 * MOST)) await send(path);
  await untilServed(3 * MOST);

  expect(performance.now() - from).toBeGreaterThan(2 * LONGEST - 1);
  expect(served).toEqual(heavies(3 * MOST));
});

test('other requests do not wait for memory-intensive ones', async () => {
  const { send, untilServed, served } = await start();
  // Each keeps its place for 20 ms.
  for (const path of heavies(40 * MOST)) await send(path);
  await untilServed(MOST);
  await send('/light/1');
  await until('it is admitted', () => served.includes('/light/1'), { every: 1 });

  expect(served.length).toBeLessThan(40 * MOST);
});
