import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import {
  CHANGES,
  change,
  endOfFeed,
  lastLook,
  nextOf,
  untilNothingPolls,
  untilPolling,
} from '../stage/changes.ts';
import { connectTo, requestText } from '../stage/connection.ts';
import { freshAddress, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

/**
 * With a single connection, so that a request that held it while waiting would be noticed, and a short statement
 * timeout.
 */
const service = serviceUnderTest(() => ({
  SVC_POSTGRES_POOL_SIZE: '1',
  SVC_POSTGRES_STATEMENT_TIMEOUT: '0.5',
}));
const { call, createUser } = service;

const administrator = administratorOf(service);

const warnings: Error[] = [];
const keepWarning = (warning: Error) => warnings.push(warning);

beforeAll(() => void process.on('warning', keepWarning));
afterAll(() => void process.off('warning', keepWarning));
afterEach(() => expect(warnings).toEqual([]));

/** Sends a request over a connection of its own, which stays open. */
async function ask(target: string) {
  const connection = await connectTo(service.url);
  const again = (next: string) =>
    connection.send(requestText(`GET ${next}`, { Authorization: service.authorization }));
  again(target);
  return { ...connection, again };
}

test('a change ends all waits, and each page has as many changes as its limit allows', async () => {
  const end = await endOfFeed(call);
  const waiting = ['limit=1&wait=20', 'wait=20', 'wait=19&limit=1000'].map((more) =>
    call('GET', `${end}&${more}`),
  );
  await untilPolling(administrator);
  const items = [freshAddress(), freshAddress()].map((email) => ({ email }));
  const users = (await call('POST', `${USERS}batch`, { items })).body as { id: string }[];
  const changes = users.map((user) => change('user.created', user, 1));

  const [one, all, others] = await Promise.all(waiting);
  expect([one?.body, all?.body, others?.body]).toEqual([changes.slice(0, 1), changes, changes]);
  expect((await call('GET', `${one && nextOf(one)}`)).body).toEqual(changes.slice(1, 2));
});

test('a request at the end by cursor=now waits, too', async () => {
  const waiting = call('GET', `${CHANGES}?cursor=now&wait=20`);
  await untilPolling(administrator);
  const ada = await createUser();

  expect((await waiting).body).toEqual([change('user.created', ada, 1)]);
});

test('a change of exclude_actor does not end the wait, and the cursor is then after it', async () => {
  const end = await endOfFeed(call);
  const waiting = call('GET', `${end}&wait=2&exclude_actor=another`);
  await untilPolling(administrator);
  const authorization = `Bearer ${await service.issuer.sign({ sub: 'another' })}`;
  await call('POST', USERS, { email: freshAddress() }, { headers: { authorization } });
  const page = await waiting;

  expect(page.body).toEqual([]);
  expect(nextOf(page)).not.toContain(/cursor=[^&]+/.exec(end)?.[0]);
  expect((await call('GET', nextOf(page).replace(/&(wait|exclude_actor)=[^&]+/g, ''))).body).toEqual([]);
});

test("a waiting request holds no connection, and is not subject to the request's time limit", async () => {
  const end = await endOfFeed(call);
  const waiting = Array.from({ length: 50 }, () => call('GET', `${end}&wait=20`));
  await untilPolling(administrator);
  const begun = performance.now();
  while (performance.now() - begun < 1500) expect((await call('GET', `${USERS}?limit=1`)).status).toBe(200);
  const ada = await createUser();

  for (const page of await Promise.all(waiting)) expect(page.body).toEqual([change('user.created', ada, 1)]);
});

describe('a client', () => {
  test.each([
    ['disconnects', 'abort'],
    ['closes its connection', 'close'],
  ] as const)('that %s frees its place', async (_case, leave) => {
    const connection = await ask(`${await endOfFeed(call)}&wait=20`);
    await untilPolling(administrator);
    connection[leave]();

    await untilNothingPolls(administrator);
  });

  test('that ends its side frees its place, and gets a response', async () => {
    const end = `${await endOfFeed(call)}&wait=20`;
    const connection = await ask(end);
    await untilPolling(administrator);
    connection.halfClose();
    const response = await connection.answer();

    expect([response.status, response.body]).toEqual([200, []]);
    await untilNothingPolls(administrator);
    expect(await connection.rest()).toBe('');
  });

  test('that ends its side with the request gets the changes that are there', async () => {
    const end = await endOfFeed(call);
    const ada = await createUser();
    const connection = await ask(`${end}&wait=20`);
    connection.halfClose();

    expect((await connection.answer()).body).toEqual([change('user.created', ada, 1)]);
    expect(await connection.rest()).toBe('');
  });

  test('can wait repeatedly over one connection', async () => {
    let next = `${await endOfFeed(call)}&wait=20`;
    const connection = await ask(next);
    for (let round = 0; round < 15; round += 1) {
      const ada = await createUser();
      const page = await connection.answer();
      expect(page.body).toEqual([change('user.created', ada, 1)]);
      next = nextOf(page);
      connection.again(next);
    }
    await untilPolling(administrator);
    await createUser();
    expect((await connection.answer()).status).toBe(200);
    connection.again('/health');
    expect((await connection.answer()).body).toEqual({ status: 'healthy' });
    connection.close();
  });

  test('that sends the next request during the wait gets its response after the wait', async () => {
    const connection = await ask(`${await endOfFeed(call)}&wait=20`);
    connection.again('/health');
    await untilPolling(administrator);
    expect(connection.isQuiet).toBe(true);
    const ada = await createUser();

    expect((await connection.answer()).body).toEqual([change('user.created', ada, 1)]);
    expect((await connection.answer()).body).toEqual({ status: 'healthy' });
    connection.close();
  });
});

test('a poll that began before a request does not end its wait', async () => {
  const before = await lastLook(administrator);
  for (let round = 0; round < 30; round += 1) {
    const end = await endOfFeed(call);
    const others = call('GET', `${end}&wait=20`);
    const ada = await createUser();
    expect((await call('GET', `${end}&wait=20`)).body).toEqual([change('user.created', ada, 1)]);
    await others;
  }
  expect(await lastLook(administrator)).toBeGreaterThan(before);
});
