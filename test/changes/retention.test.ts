import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { CHANGES, nextOf, readOn } from '../stage/changes.ts';
import { refusal, USERS } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser, cleanUp } = service;
const query = (statement: string) => inDatabase(service.database, statement);

const get = (path: string) => call('GET', path);

test('changes older than the retention are deleted, and an older cursor is 410', async () => {
  const beginning = nextOf(await get(`${CHANGES}?limit=1&cursor=now`));
  const [old, young] = [await createUser(), await createUser()];
  const ofOld = nextOf(await get(`${USERS}${old.id}/changes`));
  const cursor = nextOf(await get(beginning));
  await query(`UPDATE user_changes SET time = now() - interval '31 days' WHERE user_id = '${old.id}'`);

  await cleanUp();

  expect(await get(beginning)).toEqual(refusal('cursor_expired_error', CHANGES));
  expect((await get(cursor)).body).toMatchObject([{ subject: young.id }]);
  expect((await get(CHANGES)).body).toMatchObject([{ subject: young.id }]);
  expect((await get(ofOld)).body).toEqual([]);
  expect((await get(`${USERS}${old.id}/changes`)).body).toEqual([]);
});

describe('a change with a wrong time', () => {
  /** Stores changes of unknown users with times this many days ago, in this order. Resolves with the users' ids. */
  async function leaveChanges(daysAgo: readonly number[]): Promise<readonly string[]> {
    const ids = daysAgo.map(() => randomUUID());
    const rows = daysAgo.map((days, n) => `('${ids[n]}'::uuid, ${days}, ${n})`);
    await query(`
      INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
      SELECT id, 1, 1, 0, 'a', '', now() - days * interval '1 day' FROM (VALUES ${rows.join()}) AS v (id, days, n) ORDER BY n
    `);
    return ids;
  }

  const kept = async () =>
    (await readOn(call, `${CHANGES}?limit=1000`)).changes.map(({ subject }) => subject);

  beforeEach(() => query("UPDATE user_changes SET time = now() - interval '40 days'"));

  test('in the future does not keep older changes', async () => {
    const [, , , young, later] = await leaveChanges([40, -400, 35, 5, -1]);
    await cleanUp();

    expect(await kept()).toEqual([young, later]);
  });

  test('in the future is kept if no older change follows it', async () => {
    const [, first, second, young] = await leaveChanges([40, -1, -2, 5, 40]);
    const [last] = (await kept()).slice(-1);
    await cleanUp();

    expect(await kept()).toEqual([first, second, young, last]);
  });

  test('in the future does not stop a cleanup step, also if many have one', async () => {
    const daysAgo = [40, ...Array.from({ length: 2500 }, () => -1), 40, -1, 5];
    const ids = await leaveChanges(daysAgo);
    await cleanUp();

    expect(await kept()).toEqual(ids.slice(-2));
  });

  test('in the past does not delete younger changes before it', async () => {
    const [, ...others] = await leaveChanges([40, 5, 4000, 4]);
    await cleanUp();

    expect(await kept()).toEqual(others);
  });
});
