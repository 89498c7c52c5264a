import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { administer } from '../stage/administration.ts';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { CHANGES, change, nextOf } from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { freshKey } from '../stage/keyed.ts';
import { hold } from '../stage/locks.ts';
import { BATCH, USERS, type UserBody } from '../stage/responses.ts';
import { connectToDatabase, type PostgresServer } from '../stage/rows.ts';
import { startService, startSurroundings } from '../stage/service.ts';
import { repeat, until } from '../stage/until.ts';
import { checkOutVersion } from './earlier-version.ts';

const VERSIONS = ['1.1.0', '1.2.0', '1.3.0', '1.4.0'] as const;
const mainOf = new Map(VERSIONS.map((version) => [version, join(checkOutVersion(version), 'host/main.ts')]));
afterAll(() => {
  for (const main of mainOf.values()) rmSync(join(main, '../..'), { recursive: true });
});

const MIGRATE = join(import.meta.dirname, '../../host/commands/migrate.ts');
const COUNT = Number(process.env.USERS ?? 1_000_000);

type Call = BuiltService['call'];

type Version = (typeof VERSIONS)[number];

/** A database and an issuer for one test, an instance of the earlier version, and a function that starts another one. */
async function start(version: Version, createdBy = version) {
  const beside = await forThisTest(startSurroundings);
  const startVersion = (main = '') => forThisTest(startBuiltService, {}, { main, beside });
  if (createdBy !== version) await (await startVersion(mainOf.get(createdBy))).remove();
  const startEarlier = () => startVersion(mainOf.get(version));
  return { ...beside, startEarlier, earlier: await startEarlier() };
}

/** Sends requests whose responses depend on the index of emails, and collects unexpected ones. */
function startCallers(callers: readonly Call[]) {
  const wrong: string[] = [];
  let requests = 0;
  async function expectStatus(call: Call, expected: string, ...request: Parameters<Call>) {
    const response = await call(...request).catch(({ message }) => ({ status: message, body: undefined }));
    const { errors = [] } = (response.body ?? {}) as { errors?: { pointer: string }[] };
    const seen = [response.status, ...errors.map(({ pointer }) => pointer)].join(' ');
    requests += 1;
    if (seen !== expected) wrong.push(`${request.slice(0, 2).join(' ')}: ${seen}`);
    return response.body as UserBody;
  }
  async function round(call: Call): Promise<void> {
    const email = `Ada.${randomUUID()}@Example.com`;
    const again = email.toUpperCase();
    const { id } = await expectStatus(call, '201', 'POST', USERS, { email });
    const other = await expectStatus(call, '201', 'POST', USERS, { email: `${randomUUID()}@É.example` });
    await expectStatus(call, '409', 'POST', USERS, { email: again });
    await expectStatus(call, '409', 'PATCH', USERS + other.id, { email: again });
    const items = [{ email: `${randomUUID()}@x.example` }, { email: again }];
    await expectStatus(call, '409 #/items/1/email', 'POST', BATCH, { items });
    await expectStatus(call, '200', 'POST', BATCH, { items, mode: 'partial' });
    const finds = Array.from({ length: 8 }, () => call('GET', `${USERS}?email=${encodeURIComponent(again)}`));
    for (const { status, body } of await Promise.all(finds))
      if (status !== 200 || (body as UserBody[])[0]?.id !== id)
        wrong.push(`lookup: ${status} ${JSON.stringify(body)}`);
    await expectStatus(call, '200', 'PATCH', USERS + id, { email: again });
    await expectStatus(call, '204', 'DELETE', USERS + id);
  }
  const stops = callers.map((call) => repeat(() => round(call)));
  return {
    /** Waits until every caller has had time for several rounds. */
    untilServed: () => until('many requests', () => requests > 60 * callers.length),
    async stop() {
      await Promise.all(stops.map((stop) => stop()));
      return wrong;
    },
  };
}

/** Measures how long sessions of the service wait for a lock, without the delays of a busy processor. */
async function watchLocks(database: PostgresServer) {
  const client = await connectToDatabase(database);
  let longest = 0;
  const stop = repeat(async () => {
    const { rows } = await client.query(`
      SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8 AS seconds
      FROM pg_locks JOIN pg_stat_activity USING (pid)
      WHERE NOT granted AND datname = current_database() AND query ~* '^ *(with|insert|update|delete|select)'
        AND waitstart IS NOT NULL
    `);
    longest = Math.max(longest, rows[0].seconds);
    await sleep(10);
  });
  return {
    /** Resolves with the longest wait in seconds. */
    async stop(): Promise<number> {
      await stop();
      await client.end();
      return longest;
    },
  };
}

test.each([
  ['1.2.0', '1.1.0'],
  ['1.3.0', '1.3.0'],
  ['1.4.0', '1.4.0'],
] as const)(
  `${COUNT} users of %s, created by %s, are migrated while runs are killed, this version is rolled out and rolled back, and no request is refused`,
  // A slow disk takes four minutes for the migrations of a million users.
  { timeout: 600_000 },
  async (version, createdBy) => {
    const { issuer, database, environment, earlier, startEarlier } = await start(version, createdBy);
    const second = await startEarlier();
    const administrator = await forThisTest(administer, database.name);
    await administrator.query(`
    INSERT INTO users (id, email, full_name, external_id)
    SELECT gen_random_uuid(), n || '@Million.example', 'Ada', 'hr-' || n FROM generate_series(1, ${COUNT}) AS n`);
    await administrator.query('ANALYZE users');
    const digest = () =>
      administrator.query(
        "SELECT md5(string_agg(md5(users::text), '' ORDER BY id)) FROM users WHERE email LIKE '%@Million.example'",
      );
    const before = await digest();
    const readiness = new Set<number>();
    const stopAsking = repeat(async () => {
      readiness.add((await fetch(`${earlier.url}/ready`)).status);
      await sleep(20);
    });
    const old = startCallers([earlier.call, second.call, second.call]);
    const locks = await watchLocks(database);

    for (const pause of [400, 700, 1000, 1300, 1600]) {
      const runs = [1, 2, 3].map(() =>
        spawn(process.execPath, [MIGRATE], { env: environment, stdio: 'ignore' }),
      );
      const ends = runs.map((run) => once(run, 'exit'));
      await sleep(pause);
      for (const run of runs) run.kill('SIGKILL');
      await Promise.all(ends);
    }
    await Promise.all([1, 2, 3, 4].map(() => runMigrations(readSettings(environment).postgres)));
    const latest = await Promise.all([1, 2].map(() => startService({}, { database, issuer })));
    const young = startCallers(latest.map(({ call }) => call));
    await young.untilServed();
    const wrong = [await old.stop()];
    // The rollback.
    const back = startCallers([earlier.call]);
    await back.untilServed();
    wrong.push(await young.stop());
    await Promise.all(latest.map(({ stop }) => stop()));
    const third = await startEarlier();
    const alone = startCallers([third.call]);
    await alone.untilServed();
    wrong.push(await back.stop(), await alone.stop());
    await stopAsking();

    expect(readiness).toEqual(new Set([200]));
    expect(wrong).toEqual([[], [], [], []]);
    expect(await locks.stop()).toBeLessThan(1);
    expect(await digest()).toEqual(before);
    const indexes = await administrator.query(
      "SELECT indexname FROM pg_indexes WHERE tablename = 'users' AND indexname ~ 'email'",
    );
    expect(indexes).toEqual([{ indexname: 'users_email_key' }]);
  },
);

test.each(['1.2.0', '1.3.0', '1.4.0'] as const)(
  '%s and this version serve the users, keys, cursors and changes of each other, also after a rollback',
  async (version) => {
    const { issuer, database, earlier, startEarlier } = await start(version);
    const latest = await startService({}, { database, issuer });
    const [old, young] = [earlier.call, latest.call];
    const [first, second] = [freshKey(), freshKey()].map((key) => ({ headers: { 'idempotency-key': key } }));
    const values = (number: number) => ({ email: `Ada.${number}@Example.com`, external_id: `hr-${number}` });
    const ada = (await old('POST', USERS, values(1), first)).body as UserBody;
    const grace = (await young('POST', USERS, values(2), second)).body as UserBody;
    for (const [call, user, number, key] of [
      [young, ada, 1, first],
      [old, grace, 2, second],
    ] as const) {
      const replay = { status: 201, headers: { 'idempotency-replayed': 'true' }, body: user };
      expect(await call('POST', USERS, values(number), key)).toMatchObject(replay);
      expect((await call('POST', USERS, values(number))).status).toBe(409);
      expect((await call('GET', `${USERS}?external_id=hr-${number}`)).body).toEqual([user]);
      const ifMatch = { headers: { 'if-match': '"1"' } };
      expect((await call('PATCH', USERS + user.id, { full_name: 'Ada' }, ifMatch)).status).toBe(200);
    }
    const changes = [
      change('user.created', ada, 1),
      change('user.created', grace, 1),
      change('user.updated', ada, 2, ['full_name']),
      change('user.updated', grace, 2, ['full_name']),
    ];
    for (const [one, other] of [
      [old, young],
      [young, old],
    ] as const) {
      const { headers } = await one('GET', `${USERS}?limit=1`);
      const next = /<(.+)>/.exec(headers.link ?? '')?.[1] ?? '';
      expect((await other('GET', next)).body).toMatchObject([{ id: grace.id }]);
      const page = await one('GET', `${CHANGES}?limit=2`);
      expect(page.body).toEqual(changes.slice(0, 2));
      expect((await other('GET', nextOf(page))).body).toEqual(changes.slice(2));
    }
    await latest.stop();
    await earlier.remove();
    const { call: back } = await startEarlier();
    expect((await back('GET', CHANGES)).body).toEqual(changes);
    expect((await back('GET', USERS + ada.id)).headers.etag).toBe('"2"');
    expect((await back('DELETE', USERS + ada.id)).status).toBe(204);
    const again = await startService({}, { database, issuer });
    const { body } = await again.call('GET', `${USERS}${ada.id}/changes`);
    expect(body).toEqual([changes[0], changes[2], change('user.deleted', ada, 3)]);
    await again.stop();
  },
);

test('the migration waits for a vacuum of users in attempts of less than a second, and 1.2.0 serves meanwhile', async () => {
  const { database, environment, earlier } = await start('1.2.0');
  const administrator = await forThisTest(administer, database.name);
  const writers = startCallers(Array.from({ length: 4 }, () => earlier.call));
  const locks = await watchLocks(database);
  const vacuum = await hold(database, 'LOCK TABLE users IN SHARE UPDATE EXCLUSIVE MODE');
  const migrated = runMigrations(readSettings(environment).postgres);
  const attempts = new Set<unknown>();
  await until('several attempts', async () => {
    const rows = await administrator.query(
      "SELECT waitstart::text FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND query ILIKE '%alter table%'",
    );
    for (const { waitstart } of rows) attempts.add(waitstart);
    return attempts.size >= 2;
  });
  await vacuum.release();
  await migrated;

  expect(await writers.stop()).toEqual([]);
  expect(await locks.stop()).toBeLessThan(1);
});
