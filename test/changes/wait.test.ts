import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { freshAddress, refusal } from '../stage/answers.ts';
import {
  CHANGES,
  change,
  endOfFeed,
  lastLook,
  nextOf,
  untilNothingPolls,
  untilPolling,
} from '../stage/changes.ts';
import { connectTo, written } from '../stage/connection.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const USERS = '/api/v1/users/';

/** With a single connection, so that whoever held one while waiting would be noticed, and little time for statements. */
const service = serviceUnderTest(() => ({
  SVC_POSTGRES_POOL_SIZE: '1',
  SVC_POSTGRES_STATEMENT_TIMEOUT: '0.5',
}));
const { call, createUser } = service;

let administrator: Awaited<ReturnType<typeof administer>>;

beforeAll(async () => {
  administrator = await administer(service.database.name);
});

afterAll(() => administrator.end());

const warnings: Error[] = [];
const keepWarning = (warning: Error) => warnings.push(warning);

beforeAll(() => void process.on('warning', keepWarning));
afterAll(() => void process.off('warning', keepWarning));
afterEach(() => expect(warnings).toEqual([]));

const another = async () => ({ authorization: `Bearer ${await service.issuer.sign({ sub: 'another' })}` });

/** Sends a request over a connection of its own, which stays open. */
async function ask(target: string) {
  const connection = await connectTo(service.url);
  const again = async (next: string, method = 'GET') =>
    connection.send(
      written(`${method} ${next}`, [
        ['Host', 'localhost'],
        ['Authorization', `Bearer ${await service.issuer.sign()}`],
      ]),
    );
  await again(target);
  return { ...connection, again };
}

/** The milliseconds until `done`. */
async function timed<Value>(done: Promise<Value>) {
  const begun = performance.now();
  return { value: await done, milliseconds: performance.now() - begun };
}

test('news ends the wait, for each of those who wait, with as many changes as each takes', async () => {
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

test('changes that are there are told at once', async () => {
  const end = await endOfFeed(call);
  const ada = await createUser();
  const { value, milliseconds } = await timed(call('GET', `${end}&wait=20`));

  expect(value.body).toEqual([change('user.created', ada, 1)]);
  expect(milliseconds).toBeLessThan(10_000);
});

test('without a cursor, and at the end by cursor=now, a request waits as well', async () => {
  const waiting = call('GET', `${CHANGES}?cursor=now&wait=20`);
  await untilPolling(administrator);
  const ada = await createUser();

  expect((await waiting).body).toEqual([change('user.created', ada, 1)]);
});

test('what exclude_actor leaves out is no news, and is behind the reader when the wait ends', async () => {
  const end = await endOfFeed(call);
  const waiting = call('GET', `${end}&wait=2&exclude_actor=another`);
  await untilPolling(administrator);
  await call('POST', USERS, { email: freshAddress() }, { headers: await another() });
  const page = await waiting;

  expect(page.body).toEqual([]);
  expect(nextOf(page)).not.toContain(/cursor=[^&]+/.exec(end)?.[0]);
  expect((await call('GET', nextOf(page).replace(/&(wait|exclude_actor)=[^&]+/g, ''))).body).toEqual([]);
});

test('what comes of others is news in spite of exclude_actor', async () => {
  const end = await endOfFeed(call);
  const waiting = call('GET', `${end}&wait=20&exclude_actor=another`);
  await untilPolling(administrator);
  await call('POST', USERS, { email: freshAddress() }, { headers: await another() });
  const ada = await createUser();

  expect((await waiting).body).toEqual([change('user.created', ada, 1)]);
});

test('who waits holds no connection, and the time of a request does not count', async () => {
  const end = await endOfFeed(call);
  const waiting = Array.from({ length: 50 }, () => call('GET', `${end}&wait=20`));
  await untilPolling(administrator);
  const begun = performance.now();
  while (performance.now() - begun < 1500) expect((await call('GET', `${USERS}?limit=1`)).status).toBe(200);
  const ada = await createUser();

  for (const page of await Promise.all(waiting)) expect(page.body).toEqual([change('user.created', ada, 1)]);
});

test('a cursor that expires during the wait is 410', async () => {
  await createUser();
  const end = await endOfFeed(call);
  const waiting = call('GET', `${end}&wait=20`);
  await untilPolling(administrator);
  await administrator.query('UPDATE user_changes_head SET position = position + 1, expired = position + 1');

  expect(await waiting).toEqual(refusal('cursor_expired_error', CHANGES));
});

test('nothing polls before somebody waits, nor after', async () => {
  const end = await endOfFeed(call);
  await untilNothingPolls(administrator);
  const waiting = call('GET', `${end}&wait=1`);
  await untilPolling(administrator);
  await waiting;

  await untilNothingPolls(administrator);
});

describe('whoever', () => {
  test('hangs up gives the place back', async () => {
    const connection = await ask(`${await endOfFeed(call)}&wait=20`);
    await untilPolling(administrator);
    connection.abort();

    await untilNothingPolls(administrator);
  });

  test('closes gives the place back', async () => {
    const connection = await ask(`${await endOfFeed(call)}&wait=20`);
    await untilPolling(administrator);
    connection.close();

    await untilNothingPolls(administrator);
  });

  test('ends his side gives the place back, and is answered', async () => {
    const end = `${await endOfFeed(call)}&wait=20`;
    const connection = await ask(end);
    await untilPolling(administrator);
    connection.halfClose();
    const answer = await connection.answer();

    expect([answer.status, answer.body]).toEqual([200, []]);
    await untilNothingPolls(administrator);
    expect(await connection.rest()).toBe('');
  });

  test('ends his side with the request gets the news that is there', async () => {
    const end = await endOfFeed(call);
    const ada = await createUser();
    const connection = await ask(`${end}&wait=20`);
    connection.halfClose();

    expect((await connection.answer()).body).toEqual([change('user.created', ada, 1)]);
    expect(await connection.rest()).toBe('');
  });

  test('waits again and again over one connection goes on doing so', async () => {
    let next = `${await endOfFeed(call)}&wait=20`;
    const connection = await ask(next);
    for (let round = 0; round < 15; round += 1) {
      const ada = await createUser();
      const page = await connection.answer();
      expect(page.body).toEqual([change('user.created', ada, 1)]);
      next = nextOf(page);
      await connection.again(next);
    }
    await untilPolling(administrator);
    await createUser();
    expect((await connection.answer()).status).toBe(200);
    await connection.again('/health');
    expect((await connection.answer()).body).toEqual({ status: 'healthy' });
    connection.close();
  });

  test('sends the next request during the wait has it answered after', async () => {
    const connection = await ask(`${await endOfFeed(call)}&wait=20`);
    await connection.again('/health');
    await untilPolling(administrator);
    expect(connection.isQuiet).toBe(true);
    const ada = await createUser();

    expect((await connection.answer()).body).toEqual([change('user.created', ada, 1)]);
    expect((await connection.answer()).body).toEqual({ status: 'healthy' });
    connection.close();
  });
});

test('a look that began before a request came does not answer it', async () => {
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
