import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrations, runMigrations } from '../../lib/migrations/index.ts';
import { migrate } from '../../lib/migrations/runner.ts';
import { hold } from '../stage/locks.ts';
import { settingsFor } from '../stage/opened-database.ts';
import { createDatabase } from '../stage/postgres.ts';
import { BATCH, freshAddress, readResponse, refusal, USERS } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const { '0006-external-ids': externalIds } = migrations;
const names = Object.keys(migrations);
const earlier = Object.fromEntries(Object.entries(migrations).slice(0, names.indexOf('0006-external-ids')));

let database: Awaited<ReturnType<typeof createDatabase>>;
let issuer: Awaited<ReturnType<typeof startIssuer>>;

beforeEach(async () => {
  [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  await migrate(settingsFor(database), earlier);
});

afterEach(async () => {
  await Promise.all([issuer.stop(), database.drop()]);
});

const indexes = () =>
  inDatabase(
    database,
    `SELECT indisvalid AND indisunique AS is_ready FROM pg_index WHERE indexrelid = to_regclass('users_external_id_key')`,
  );
const columns = async () =>
  (
    await inDatabase(
      database,
      `SELECT attname FROM pg_attribute WHERE attrelid = 'users'::regclass AND attname LIKE 'external%'`,
    )
  ).map(({ attname }) => attname);

test('while the schema is older than the instance, operations on users and /ready are 503, and nothing is 500', async () => {
  const variables = { SVC_POSTGRES_MIGRATE: 'false' };
  const { url, call, stop } = await startService(variables, { database, issuer }, { waitsUntilReady: false });
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
    const responses = await Promise.all(
      [{}, {}, {}].map(async () => readResponse(await call(method, path, body))),
    );
    expect(responses).toEqual(Array(3).fill(refusal('service_unavailable_error', path)));
  }
  expect((await fetch(`${url}/ready`)).status).toBe(503);

  await runMigrations(settingsFor(database));
  for (const [method, path, body] of requests)
    expect((await call(method, path, body)).status).toBeLessThan(410);
  expect((await fetch(`${url}/ready`)).status).toBe(200);
  await stop();
});

const WAITING = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;

test('the unique index exists before the column has its name', async () => {
  const writer = await hold(
    database,
    `INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'held@example.com')`,
  );
  const migrated = runMigrations(settingsFor(database));
  await until('its attempt', async () => {
    const waiting = await inDatabase(database, WAITING);
    return waiting.length > 0;
  });
  expect(await columns()).not.toContain('external_id');
  await writer.release();
  await migrated;

  expect(await columns()).toEqual(['external_id']);
  expect(await indexes()).toEqual([{ is_ready: true }]);
});

test('two instances without a common lock can migrate at once, and complete an interrupted migration', async () => {
  const postgres = settingsFor(database);
  await inDatabase(database, 'ALTER TABLE users ADD COLUMN external_id_unindexed text');
  const unlocked = { ...postgres, engine: 'distributed' } as const;
  await Promise.allSettled([1, 2, 3].map(() => migrate(unlocked, { '0006-external-ids': externalIds })));
  await runMigrations(postgres);
  await inDatabase(database, `DELETE FROM kysely_migration WHERE name = '0006-external-ids'`);
  await runMigrations(postgres);

  expect(await columns()).toEqual(['external_id']);
  expect(await indexes()).toEqual([{ is_ready: true }]);
});
