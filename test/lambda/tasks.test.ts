import { describe, expect, test } from 'vitest';
import { migrations } from '../../lib/migrations/index.ts';
import { startComposition } from '../stage/composition.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startFunction } from '../stage/lambda-function.ts';
import { hold } from '../stage/locks.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { environmentOf } from '../stage/service.ts';
import { timed } from '../stage/until.ts';

const stage = forAllTests(() => startComposition());

test('the scheduled function deletes expired rows', async () => {
  await stage.database.query(`
    INSERT INTO idempotency_keys (key, request, user_ids, created_at)
    SELECT decode(lpad(to_hex(n), 8, '0'), 'hex'), '', '{}', now() - n * interval '1 hour'
    FROM generate_series(1, 50) AS n
  `);
  await stage.createUser();
  await stage.database.query("UPDATE user_changes_unnumbered SET time = time - interval '31 days'");
  await stage.createUser();
  const maintain = await forThisTest(startFunction, 'maintain', stage.environment);
  await maintain.call({});

  expect(await stage.database.query('SELECT FROM idempotency_keys')).toHaveLength(23);
  expect(await stage.database.query('SELECT position FROM user_changes')).toEqual([{ position: '2' }]);
});

describe('the function of a deployment', () => {
  async function start() {
    const { database, admin } = await emptyDatabase();
    const migrate = await forThisTest(startFunction, 'migrate', environmentOf(database, stage.issuer));
    return { database, migrate, admin };
  }

  test('runs the pending migrations, and succeeds again when there are none', async () => {
    const { migrate, admin } = await start();

    await migrate.call({});
    await migrate.call({});

    const recorded = await admin.query('SELECT name FROM kysely_migration ORDER BY name');
    expect(recorded.map(({ name }) => name)).toEqual(Object.keys(migrations));
  });

  test('fails if a migration fails, with a reason that has no value of a row', async () => {
    const { migrate, admin } = await start();
    await migrate.call({});
    await admin.query(`
      DROP INDEX users_external_id_key;
      INSERT INTO users (id, email, external_id)
      SELECT gen_random_uuid(), n || '@example.com', 'private' FROM generate_series(1, 2) AS n;
      ALTER TABLE users RENAME COLUMN external_id TO external_id_unindexed;
      DELETE FROM kysely_migration WHERE name = '0006-external-ids';
    `);

    const outcome = await migrate.invoke({});

    expect(outcome).toMatchObject({
      error: { errorMessage: 'a value was refused by users_external_id_key (23505)' },
    });
    expect(JSON.stringify(outcome) + migrate.printed() + migrate.errors()).not.toContain('private');
  });

  test('fails before its time is up', async () => {
    const { database, migrate } = await start();
    const table = await hold(database, 'CREATE TABLE users (id int)');

    const { value, milliseconds } = await timed(migrate.invoke({}, { seconds: 6 }));
    await table.release();

    expect(value).toMatchObject({ error: { errorMessage: "the function's time is up" } });
    expect(milliseconds).toBeLessThan(6000);
  });
});
