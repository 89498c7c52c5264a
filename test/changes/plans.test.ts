import { describe, expect, test } from 'vitest';
import { ChangeCleanup } from '../../lib/changes/change-cleanup.ts';
import { type Reading, selectOfAll, selectOfUser } from '../../lib/changes/feed-page.ts';
import { ChangeNumbering } from '../../lib/changes/numbering.ts';
import { migratedDatabase } from '../stage/opened-database.ts';
import { plansOver } from '../stage/plans.ts';
import { prepare, statementSentBy } from '../stage/statements.ts';

/** Number of users and of changes. Each hundredth change is of the first user, every second one of the actor "busy". */
const MANY = 100_000;

const migrated = migratedDatabase(async (client) => {
  await client.query(`
    INSERT INTO users (id, email) SELECT md5(n::text)::uuid, n || '@example.com' FROM generate_series(0, ${MANY - 1}) AS n;
    INSERT INTO user_changes (position, user_id, version, type, changed, actor, request_id, time)
    SELECT n, md5(CASE WHEN n % 100 = 0 THEN 0 ELSE n - 1 END::text)::uuid, 1, 1, 0,
      CASE n % 2 WHEN 0 THEN 'busy' ELSE 'calm' END, gen_random_uuid(), now()
    FROM generate_series(1, ${MANY}) AS n;
    UPDATE user_changes_head SET position = ${MANY};
  `);
  for (const table of ['users', 'user_changes', 'user_changes_head', 'user_changes_unnumbered'])
    await client.query(`VACUUM ANALYZE ${table}`);
});

const reading = (given: Partial<Reading>) =>
  statementSentBy((statements) =>
    prepare(
      statements,
      'SELECT user_changes',
      given.userId === undefined ? selectOfAll : selectOfUser,
    )({
      after: undefined,
      limit: 100,
      userId: undefined,
      excludeActor: undefined,
      ...given,
    }),
  );

const POSITION = 'user_changes_pkey';
const USER = 'user_changes_user_id_position_idx';
/** The head, which is a single row, and the changes without a position, which are few. */
const SMALL = ['user_changes_head', 'user_changes_unnumbered'];
const FIRST_USER = 'cfcd2084-95d5-65ef-66e7-dff9f98764da';

describe.each(['known', 'named'] as const)('with 100,000 changes and %s values,', (kind) => {
  test.each<readonly [string, Partial<Reading>, readonly string[], number]>([
    ['a poll without new changes reads a handful of pages', { after: MANY }, [POSITION], 8],
    ['cursor=now reads a handful of pages', { limit: 0 }, [], 8],
    ['the largest page reads what it contains', { after: 50_000, limit: 1000 }, [POSITION], 40],
    [
      'a page without the only actor ends after 2,000 positions',
      { after: 50_000, excludeActor: 'calm' },
      [POSITION],
      60,
    ],
    ['a page of one user reads the changes of that user', { userId: FIRST_USER }, [USER], 130],
  ])('%s', async (_title, given, indexes, most) => {
    const cost = await plansOver(migrated.client)[kind](await reading(given));

    expect(cost.indexes).toEqual(expect.arrayContaining([...indexes]));
    expect(SMALL).toEqual(expect.arrayContaining([...cost.wholeTables]));
    expect(cost.pages).toBeLessThanOrEqual(most);
  });

  test('numbering without new changes and cleanup without expired changes read a handful of pages', async () => {
    const number = await statementSentBy((statements) => new ChangeNumbering(statements).numberChanges());
    const expire = await statementSentBy((statements) =>
      new ChangeCleanup(statements, 30).deleteExpired().next(),
    );

    const plan = plansOver(migrated.client)[kind];

    expect((await plan(number)).pages).toBeLessThanOrEqual(8);
    const cost = await plan(expire);
    expect(cost.indexes).toContain(POSITION);
    expect(cost.wholeTables.filter((table) => !SMALL.includes(table))).toEqual([]);
    // It reads a thousand of the oldest changes.
    expect(cost.pages).toBeLessThanOrEqual(60);
  });
});
