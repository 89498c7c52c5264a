import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { CHANGES, change, endOfFeed, nextOf, untilPolling } from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { timed } from '../stage/until.ts';

/** Number of changes in the feed, all of one actor. */
const MANY = 200_000;

const service = serviceUnderTest();
const { createUser } = service;

const administrator = administratorOf(service);

/**
 * Within this time, in milliseconds, a reader has a change or the end of its wait: half a second, and on a busy machine
 * what twenty reads take there.
 */
const soon = async () => 500 + 20 * (await timed(service.call('GET', `${USERS}?limit=1`))).milliseconds;

/** Writes changes as that actor would write them and readers would number them. */
const leaveChanges = (count: number) =>
  administrator.query(`
    WITH head AS (SELECT position FROM user_changes_head), written AS (
      INSERT INTO user_changes (position, user_id, version, type, changed, actor, request_id, time)
      SELECT position + n, gen_random_uuid(), 1, 1, 0, 'busy', '', now() FROM head, generate_series(1, ${count}) AS n
    ) UPDATE user_changes_head SET position = position + ${count}
  `);

beforeAll(async () => void (await leaveChanges(MANY)));

/** Starts another instance for one test. Resolves with a function that reads from it. */
async function startFresh() {
  const { call } = await forThisTest(startService, {}, service);
  return (path: string) => call('GET', path);
}

test('a reader far behind does not delay others in an instance that has just started', async () => {
  const end = await endOfFeed(service.call);
  const get = await startFresh();
  const far = Array.from({ length: 3 }, () => get(`${CHANGES}?exclude_actor=busy&wait=20&cursor=LjA`));
  const short = timed(get(`${end}&wait=1`));
  const long = get(`${end}&wait=20`);
  await sleep(300);
  const ada = await createUser();
  const page = await timed(long);

  expect(page.value.body).toEqual([change('user.created', ada, 1)]);
  expect(page.milliseconds).toBeLessThan(await soon());
  expect((await short).value.body).toEqual([change('user.created', ada, 1)]);
  for (const page of await Promise.all(far)) expect([page.status, page.body]).toEqual([200, []]);
});

test('every wait ends on time beside a reader far behind', async () => {
  const end = await endOfFeed(service.call);
  const get = await startFresh();
  const far = get(`${CHANGES}?exclude_actor=busy&wait=20&cursor=LjA`);
  const waits = await Promise.all([1, 2].map((seconds) => timed(get(`${end}&wait=${seconds}`))));

  for (const [n, { value, milliseconds }] of waits.entries()) {
    expect([value.status, value.body]).toEqual([200, []]);
    expect(milliseconds).toBeLessThan((n + 1) * 1000 + (await soon()));
  }
  expect((await far).status).toBe(200);
});

test('readers that fall behind while they wait do not delay readers at the head', async () => {
  const get = await startFresh();
  const end = await endOfFeed((_method, path) => get(path));
  const behind = Array.from({ length: 20 }, () => get(`${end}&exclude_actor=busy&wait=20`));
  await untilPolling(administrator);
  await leaveChanges(MANY);
  const atTheHead = await endOfFeed(service.call);
  const short = timed(get(`${atTheHead}&wait=1`));
  const long = get(`${atTheHead}&wait=20`);
  await sleep(100);
  const ada = await createUser();
  const page = await timed(long);

  expect(page.milliseconds).toBeLessThan(await soon());
  expect(page.value.body).toEqual([change('user.created', ada, 1)]);
  expect((await short).milliseconds).toBeLessThan(1000 + (await soon()));
  for (let page of await Promise.all(behind)) {
    // On a busy machine the way there takes longer than one wait.
    while ((page.body as unknown[]).length === 0) page = await get(nextOf(page));
    expect(page.body).toEqual([change('user.created', ada, 1)]);
    expect(nextOf(page)).toContain('exclude_actor=busy');
  }
});
