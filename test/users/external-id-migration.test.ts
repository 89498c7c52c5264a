import { expect, test } from 'vitest';
import { migrations, runMigrations } from '../../lib/migrations/index.ts';
import { migrate } from '../../lib/migrations/runner.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdEmail } from '../stage/locks.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { BATCH, freshAddress, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const { '0006-external-ids': externalIds } = migrations;
const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0006-external-ids'));

/** A database with the tables before the external id. */
async function earlierDatabase() {
  const made = await emptyDatabase();
  await migrate(made.settings, earlier);
  return made;
}

type Earlier = Awaited<ReturnType<typeof emptyDatabase>>;

const structure = async ({ admin }: Earlier) => ({
  columns: await admin.query(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'users'::regclass AND attname LIKE 'external%'`,
  ),
  indexes: await admin.query(
    `SELECT indisvalid AND indisunique AS is_ready FROM pg_index WHERE indexrelid = to_regclass('users_external_id_key')`,
  ),
});

const COMPLETE = { columns: [{ name: 'external_id' }], indexes: [{ is_ready: true }] };

test('while the schema is older than the instance, operations on users and /ready are 503, and nothing is 500', async () => {
  const { database, settings } = await earlierDatabase();
  const issuer = await forThisTest(startIssuer);
  const variables = { SVC_POSTGRES_MIGRATE: 'false' };
  const beside = { database, issuer };
  const { url, call } = await forThisTest(startService, variables, beside, { waitsUntilReady: false });
  const id = crypto.randomUUID();
  const requests = [
    ['POST', USERS, { email: freshAddress() }],
    ['POST', USERS, { email: freshAddress(), external_id: 'x' }],
    ['POST', BATCH, { items: [{ email: freshAddress() }] }],
    ['POST', BATCH, { items: [{ email: freshAddress(), external_id: 'x' }], mode: 'partial' }],
    ['GET', USERS],
    ['GET', USERS + id],
    ['PATCH', USERS + id, { full_name: 'Ada' }],
  ] as const;
  for (const [method, path, body] of requests) {
    const responses = await Promise.all([{}, {}, {}].map(() => call(method, path, body)));
    expect(responses).toEqual(Array(3).fill(refusal('service_unavailable_error', path)));
  }
  expect((await fetch(`${url}/ready`)).status).toBe(503);

  await runMigrations(settings);
  for (const [method, path, body] of requests)
    expect((await call(method, path, body)).status).toBeLessThan(410);
  expect((await fetch(`${url}/ready`)).status).toBe(200);
});

const WAITING = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;

test('the unique index exists before the column has its name', async () => {
  const made = await earlierDatabase();
  const writer = await holdEmail(made.database, 'held@example.com');
  const migrated = runMigrations(made.settings);
  await until('its attempt', async () => (await made.admin.query(WAITING)).length > 0);
  expect((await structure(made)).columns).not.toContainEqual({ name: 'external_id' });
  await writer.release();
  await migrated;

  expect(await structure(made)).toEqual(COMPLETE);
});

test('two instances without a common lock can migrate at once, and complete an interrupted migration', async () => {
  const made = await earlierDatabase();
  await made.admin.query('ALTER TABLE users ADD COLUMN external_id_unindexed text');
  const unlocked = { ...made.settings, engine: 'distributed' } as const;
  await Promise.allSettled([1, 2, 3].map(() => migrate(unlocked, { '0006-external-ids': externalIds })));
  await runMigrations(made.settings);
  await made.admin.query(`DELETE FROM kysely_migration WHERE name = '0006-external-ids'`);
  await runMigrations(made.settings);

  expect(await structure(made)).toEqual(COMPLETE);
});
