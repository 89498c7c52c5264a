import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { CHANGES, change, endOfFeed, nextOf, untilNothingPolls, untilPolling } from '../stage/changes.ts';
import { createServiceResponse, type ServiceResponse } from '../stage/service-response.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

/** Maximum number of waiting requests of an instance. */
const CROWD = 1000;

/** In milliseconds. The client shares the machine and the process with the service; alone this takes 0.2 s. */
const SOON = 15_000;

const service = serviceUnderTest();
const { call, createUser } = service;

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const administrator = administratorOf(service);
afterAll(() => agent.destroy());

/** Sends a request over a kept connection. `leave` disconnects. */
function ask(target: string): { readonly response: Promise<ServiceResponse>; leave(): void } {
  const { hostname, port } = new URL(service.url);
  const headers = { authorization: service.authorization };
  const sent = request({ agent, host: hostname, port, path: target, headers });
  const response = new Promise<ServiceResponse>((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', async (incoming) => {
      const body = Buffer.concat(await incoming.toArray());
      const headers = incoming.headers as Record<string, string>;
      resolve(createServiceResponse(incoming.statusCode ?? 0, headers, body));
    });
  });
  sent.end();
  return { response, leave: () => sent.destroy() };
}

const crowd = (target: string) => Array.from({ length: CROWD }, () => ask(target));

test('a thousand waiting requests all return each change, and none is refused when all are repeated at once', async () => {
  let next = `${await endOfFeed(call)}&wait=20`;
  let waiting = crowd(next);
  for (let round = 0; round < 5; round += 1) {
    await untilPolling(administrator);
    const begun = performance.now();
    const ada = await createUser();
    const pages = await Promise.all(waiting.map(({ response }) => response));

    expect(performance.now() - begun).toBeLessThan(SOON);
    for (const page of pages) expect(page.status).toBe(200);
    for (const page of pages) expect(page.body).toEqual([change('user.created', ada, 1)]);
    next = nextOf(pages[0] as ServiceResponse);
    waiting = crowd(next);
  }
  await untilPolling(administrator);
  // For a moment one more asks whether PostgreSQL works on a late statement.
  await expect.poll(() => administrator.countSessions()).toBeLessThanOrEqual(11);
  for (const { response, leave } of waiting) {
    response.catch(() => undefined);
    leave();
  }
  await untilNothingPolls(administrator);
});

test('a thousand readers far behind are all served at once', async () => {
  for (let round = 0; round < 3; round += 1) {
    const items = Array.from({ length: 100 }, (_, n) => ({ email: `far-${round}-${n}@example.com` }));
    expect((await call('POST', '/api/v1/users/batch', { items })).status).toBe(201);
  }
  const pages = await Promise.all(crowd(`${CHANGES}?wait=20`).map(({ response }) => response));

  for (const page of pages) expect([page.status, (page.body as unknown[]).length]).toEqual([200, 100]);
});

test('a wait beyond a thousand ends at once, until another one disconnects', async () => {
  const end = `${await endOfFeed(call)}&wait=20`;
  const waiting = crowd(end);
  // Until all thousand wait, one more can still be accepted.
  const page = await until('one more has its response', () => endedAtOnce(end));
  expect([page.status, page.body]).toEqual([200, []]);
  const leaver = waiting.shift();
  leaver?.response.catch(() => undefined);
  leaver?.leave();
  const successor = await until('one more waits', async () => {
    const asked = ask(end);
    return (await within(500, asked.response)) === undefined && asked;
  });
  const ada = await createUser();

  const pages = await Promise.all([successor, ...waiting].map(({ response }) => response));
  for (const { body } of pages) expect(body).toEqual([change('user.created', ada, 1)]);
});

async function endedAtOnce(target: string): Promise<ServiceResponse | undefined> {
  const { response, leave } = ask(target);
  const page = await within(1000, response);
  if (page) return page;
  response.catch(() => undefined);
  leave();
  return undefined;
}

function within<Value>(milliseconds: number, value: Promise<Value>): Promise<Value | undefined> {
  return Promise.race([value, sleep(milliseconds, undefined, { ref: false })]);
}
