import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { administer } from '../stage/administration.ts';
import { change, endOfFeed } from '../stage/changes.ts';
import { hold } from '../stage/locks.ts';
import { freshAddress, type UserBody } from '../stage/responses.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { repeat, until } from '../stage/until.ts';
import { stageOfVersion, startEarlierVersion } from './earlier-version.ts';
import { startWriters, watchLocks } from './writers.ts';

const USERS = '/api/v1/users/';

const stage = stageOfVersion('1.0.0');

/** Requests /ready repeatedly. Resolves with every status other than 200. */
function watchReadiness(url: string) {
  const others: number[] = [];
  const stop = repeat(async () => {
    const { status } = await fetch(`${url}/ready`);
    if (status !== 200) others.push(status);
    await sleep(20);
  });
  return { stop: () => stop().then(() => others) };
}

test('while this version migrates and both serve, the responses of the first version do not change', async () => {
  const { folder, issuer, database, earlier: first, callerAt } = stage;
  const call = callerAt(first.url);
  const known = new Map<string, UserBody>();
  for (let count = 0; count < 50; count += 1) {
    const user = (await call('POST', USERS, { email: freshAddress(), full_name: `${count}` }))
      .body as UserBody;
    known.set(user.id, user);
  }
  const answersOf = async () => {
    const reads = [...known.keys()].map((id) => call('GET', USERS + id));
    const responses = [
      ...(await Promise.all(reads)),
      await call('GET', `${USERS}?limit=50`),
      await call('GET', `${USERS}x`),
    ];
    return responses.map(({ headers: { 'x-request-id': _, ...headers }, ...response }) => ({
      ...response,
      headers,
    }));
  };
  const before = await answersOf();
  const readiness = watchReadiness(first.url);
  const writers = startWriters(first.url, issuer, 4);
  const locks = await watchLocks(database);
  const latest = await startService({}, { database, issuer });
  const latestWriters = startWriters(latest.url, issuer, 4);
  // An instance that starts or returns during the roll-out.
  const another = await startEarlierVersion(folder, environmentOf(database, issuer));
  const anotherReadiness = watchReadiness(another.url);

  expect(await answersOf()).toEqual(before);
  const callLatest = callerAt(latest.url);
  for (const [id, user] of known) {
    const { body, headers } = await callLatest('GET', USERS + id);
    expect([body, headers.etag]).toEqual([user, '"1"']);
  }
  expect((await callLatest('GET', `${USERS}?limit=50`)).body).toEqual([...known.values()]);
  const ends = await Promise.all([writers.stop(), latestWriters.stop()]);
  for (const { wrong, writes } of ends) {
    expect(wrong).toEqual([]);
    expect(writes).toBeGreaterThan(0);
  }
  expect(await locks.stop()).toBeLessThan(1);
  expect([...(await readiness.stop()), ...(await anotherReadiness.stop())]).toEqual([]);
  const administrator = await administer(database.name);
  const names = await administrator.query('SELECT name FROM kysely_migration ORDER BY name');
  await administrator.end();
  expect(names.slice(0, 2)).toEqual([{ name: '0001-users' }, { name: '0002-inactive-users' }]);
  await another.stop();
  await latest.stop();
});

test('each version reads and writes the rows of the other, and only this version writes changes', async () => {
  const { issuer, database, earlier: first, callerAt } = stage;
  const latest = await startService({}, { database, issuer });
  const [old, young] = [callerAt(first.url), callerAt(latest.url)];
  const ada = (await old('POST', USERS, { email: freshAddress() })).body as UserBody;
  const grace = (await young('POST', USERS, { email: freshAddress() })).body as UserBody;

  expect((await young('PATCH', USERS + ada.id, { full_name: 'Ada' })).headers.etag).toBe('"2"');
  expect((await old('PATCH', USERS + grace.id, { full_name: 'Grace' })).headers.etag).toBe('"2"');
  expect((await young('PATCH', USERS + grace.id, { is_active: false })).headers.etag).toBe('"3"');
  expect((await young('POST', USERS, { email: ada.email.toUpperCase() })).status).toBe(409);
  expect((await old('POST', USERS, { email: grace.email.toUpperCase() })).status).toBe(409);
  expect((await young('GET', `${USERS}${ada.id}/changes`)).body).toEqual([
    change('user.updated', ada, 2, ['full_name']),
  ]);
  expect((await young('GET', `${USERS}${grace.id}/changes`)).body).toEqual([
    change('user.created', grace, 1),
    change('user.updated', grace, 3, ['is_active']),
  ]);

  const end = await endOfFeed(young);
  await old('DELETE', USERS + ada.id);
  await young('DELETE', USERS + grace.id);
  expect((await young('GET', end)).body).toEqual([change('user.deleted', grace, 4)]);
  await latest.stop();
});

test('beside a forgotten transaction no write waits for a second, and the migration continues after it', async () => {
  const { issuer, database, earlier: first } = stage;
  const administrator = await administer(database.name);
  const writers = startWriters(first.url, issuer, 4);
  const locks = await watchLocks(database);
  const forgotten = await hold(database, 'SELECT FROM users LIMIT 1');
  const migrated = runMigrations(readSettings(environmentOf(database, issuer)).postgres);
  const attempts = new Set<unknown>();
  await until(
    'several attempts',
    async () => {
      const rows = await administrator.query(
        "SELECT waitstart::text FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND query ILIKE '%alter table%'",
      );
      for (const { waitstart } of rows) attempts.add(waitstart);
      return attempts.size >= 2;
    },
    { seconds: 30 },
  );
  await forgotten.release();
  await migrated;

  expect((await writers.stop()).wrong).toEqual([]);
  expect(await locks.stop()).toBeLessThan(1);
  await administrator.end();
});

test('a million users are migrated while the first version writes, and no write waits a second for a lock', async () => {
  const { issuer, database, earlier: first } = stage;
  const administrator = await administer(database.name);
  await administrator.query(`
    INSERT INTO users (id, email, is_active, created_at, updated_at)
    SELECT gen_random_uuid(), n || '@million.example', n % 100 <> 0, t, t FROM generate_series(1, 1000000) AS n,
      LATERAL (SELECT '2025-01-01T00:00:00Z'::timestamptz + n * interval '10 seconds' AS t) AS times
  `);
  const digest = () =>
    administrator.query(`
      SELECT md5(string_agg(md5(u::text), '' ORDER BY id)) FROM (
        SELECT id, email, full_name, is_active, created_at, updated_at, version FROM users
        WHERE email LIKE '%@million.example'
      ) AS u`);
  const before = await digest();
  const writers = startWriters(first.url, issuer, 4);
  const readiness = watchReadiness(first.url);
  const locks = await watchLocks(database);
  const begun = performance.now();
  await runMigrations(readSettings(environmentOf(database, issuer)).postgres);
  const seconds = (performance.now() - begun) / 1000;
  const { wrong, writes, longest } = await writers.stop();
  const longestLock = await locks.stop();

  process.stdout.write(
    `1,000,000 users: migrated in ${seconds.toFixed(1)} s, beside ${writes} writes of the first version; ` +
      `longest response ${longest} ms, longest wait for a lock ${(longestLock * 1000).toFixed(0)} ms\n`,
  );
  expect(wrong).toEqual([]);
  expect(longestLock).toBeLessThan(1);
  expect(await readiness.stop()).toEqual([]);
  expect(await digest()).toEqual(before);
  await administrator.end();
});
