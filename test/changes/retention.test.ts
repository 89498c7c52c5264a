import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { CHANGES, readOn } from '../stage/changes.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, cleanUp } = service;
const query = (statement: string) => service.database.query(statement);

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

const kept = async () => (await readOn(call, `${CHANGES}?limit=1000`)).changes.map(({ subject }) => subject);

beforeEach(() => query("UPDATE user_changes SET time = now() - interval '40 days'"));

test('one cleanup deletes more expired keys than one of its steps', async () => {
  await query(`
    INSERT INTO idempotency_keys (key, request, user_ids, created_at)
    SELECT sha256(n::text::bytea), '', '{}', now() - interval '25 hours' FROM generate_series(1, 2500) AS n`);
  await cleanUp();

  expect(await query('SELECT FROM idempotency_keys')).toEqual([]);
});

describe('a change with a wrong time', () => {
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
    expect(await query('SELECT FROM user_changes')).toHaveLength(2);
  });

  test('in the past does not delete younger changes before it', async () => {
    const [, ...others] = await leaveChanges([40, 5, 4000, 4]);
    await cleanUp();

    expect(await kept()).toEqual(others);
  });
});
