import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { CHANGES } from '../stage/changes.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { freshKey } from '../stage/keyed.ts';
import { BATCH, freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { startStandby } from '../stage/standby.ts';
import { repeat, until } from '../stage/until.ts';
import { type Address, migrateAlone, serviceOver } from './service-over.ts';

const POOL_SIZE = 10;
/** Those for requests, the one of the readiness check, and for a moment the search for a host and a question about a statement. */
const MAX_SESSIONS = POOL_SIZE + 3;

const postgres = forAllTests(() => startDisposablePostgres());

/** Without a time limit of PostgreSQL, and with another account than the other services. */
const DISTRIBUTED = { SVC_POSTGRES_ENGINE: 'distributed', SVC_POSTGRES_USER: 'postgres' };

/** An insert of this user takes so many seconds. */
const slowAddress = (seconds: number) => `slow.${seconds * 1000}.${freshAddress()}`;

const INSERTS = "query LIKE '%insert into users%'";

beforeAll(async () => {
  await migrateAlone(postgres);
  await postgres.query([
    `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       PERFORM pg_sleep(split_part(new.email, '.', 2)::float / 1000); RETURN new; END $$`,
    `CREATE TRIGGER slow BEFORE INSERT ON users FOR EACH ROW WHEN (new.email LIKE 'slow.%') EXECUTE FUNCTION slow()`,
    'CREATE ROLE owner',
    'CREATE ROLE account LOGIN IN ROLE owner',
    'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO owner',
    'GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO owner',
  ]);
});

/** A service with an account that is not a superuser. */
const start = (variables: Variables = {}, others: readonly Address[] = []) =>
  serviceOver([postgres, ...others], postgres, { SVC_POSTGRES_USER: 'account', ...variables });

/** Until the test ends, this is altered. */
async function alter(what: string, undo: string): Promise<void> {
  // In another database, where the settings of this one do not apply.
  await postgres.query(`ALTER ${what}`, 'template1');
  onTestFinished(async () => void (await postgres.query(`ALTER ${undo}`, 'template1')));
}

/** One request of each kind, in this order. Resolves with their statuses. */
async function sendEach({ call }: Awaited<ReturnType<typeof start>>) {
  const created = await call('POST', USERS, { email: freshAddress() });
  const path = USERS + (created.body as UserBody).id;
  const keyed = { headers: { 'idempotency-key': freshKey() } };
  const responses = [
    created,
    await call('GET', path),
    await call('GET', USERS),
    await call('GET', `${USERS}?skip=1&is_active=true`),
    await call('POST', USERS, { email: freshAddress() }, keyed),
    await call('POST', BATCH, { items: [{ email: freshAddress() }] }),
    await call('PATCH', path, { full_name: 'x' }),
    await call('DELETE', path),
    await call('GET', CHANGES),
    await call('GET', `${CHANGES}?cursor=now&limit=1&wait=1`),
    await call('GET', '/ready'),
  ];
  return responses.map(({ status }) => status);
}

const EACH_SUCCEEDS = [201, 200, 200, 200, 201, 201, 200, 204, 200, 200, 200];

test.each([
  [1, []],
  [4, []],
  [1, [{ host: '127.0.0.1', port: 1 }]],
])(
  'with a limit of %i sessions for the role, and the further hosts %j, all operations succeed',
  async (limit, others) => {
    await alter(`ROLE account CONNECTION LIMIT ${limit}`, 'ROLE account CONNECTION LIMIT -1');
    const service = await start({}, others);
    expect((await service.call('GET', USERS)).status).toBe(200);

    expect(await sendEach(service)).toEqual(EACH_SUCCEEDS);
    const all = await Promise.all(Array.from({ length: 8 }, () => sendEach(service)));
    expect(all).toEqual(all.map(() => EACH_SUCCEEDS));
    expect((await service.call('GET', '/ready')).status).toBe(200);
  },
);

test('when the session for reads ends while PostgreSQL is full, reads use the others', async () => {
  const service = await start();
  await Promise.all(Array.from({ length: 30 }, () => sendEach(service)));
  const reading = "query like 'select%from users%'";
  await alter('ROLE account CONNECTION LIMIT 1', 'ROLE account CONNECTION LIMIT -1');
  expect(await postgres.terminate(`usename = 'account' and ${reading}`)).toBeGreaterThan(0);
  await sleep(50);

  const reads = await Promise.all(Array.from({ length: 20 }, () => service.call('GET', USERS)));
  expect(reads.map(({ status }) => status)).toEqual(reads.map(() => 200));
  expect(await sendEach(service)).toEqual(EACH_SUCCEEDS);
});

test('with `set role` of the role, slow writes succeed', async () => {
  await alter('ROLE account SET role = owner', 'ROLE account RESET role');
  const service = await start();
  const writes = Array.from({ length: 3 }, () => service.call('POST', USERS, { email: slowAddress(0.6) }));

  expect((await Promise.all(writes)).map(({ status }) => status)).toEqual(writes.map(() => 201));
});

test('at the start, a write does not wait behind a slow one', async () => {
  const service = await start();
  const ended: string[] = [];
  const slow = service.call('POST', USERS, { email: slowAddress(2.2) }).finally(() => ended.push('slow'));
  await until('it runs', async () => (await postgres.countSessions(`state = 'active' AND ${INSERTS}`)) === 1);

  expect((await service.create().finally(() => ended.push('quick'))).status).toBe(201);
  expect((await slow).status).toBe(201);
  expect(ended).toEqual(['quick', 'slow']);
});

test('no request is 503 if `idle_session_timeout` is as long as the pause between requests', async () => {
  const pause = 300;
  await alter(`ROLE account SET idle_session_timeout = ${pause}`, 'ROLE account RESET idle_session_timeout');
  const service = await start();
  const statuses: number[] = [];
  for (let request = 0; request < 24; request += 1) {
    const responses = await Promise.all([service.create(), service.call('GET', USERS)]);
    statuses.push(...responses.map(({ status }) => status).filter((status) => status > 201));
    await sleep(pause - 6 + (request % 8));
  }

  expect(statuses).toEqual([]);
});

test('while a synchronous standby is unavailable, writes are 503, reads 200, and nothing is lost', {
  timeout: 60_000,
}, async () => {
  const standby = await forThisTest(startStandby, postgres);
  await postgres.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await postgres.query('SELECT pg_reload_conf()');
  const service = await start({ SVC_POSTGRES_STATEMENT_TIMEOUT: '1' }, [standby]);
  await service.untilWritten();
  const distributed = await start({ ...DISTRIBUTED, SVC_POSTGRES_STATEMENT_TIMEOUT: '1' }, [standby]);
  await distributed.untilWritten();
  const path = USERS + ((await service.create()).body as UserBody).id;
  await Promise.all(Array.from({ length: 10 }, () => service.call('GET', path)));

  await standby.shutDown();
  const refused: { email: string; key: string }[] = [];
  const reads = new Set<number>();
  let sessions = 0;
  const write = async ({ email, key }: { email: string; key: string }) =>
    service.call('POST', USERS, { email }, { headers: { 'idempotency-key': key } });
  const writeRefused = async () => {
    const sent = { email: freshAddress(), key: freshKey() };
    expect((await write(sent)).status).toBe(503);
    for (const { create } of [service, distributed]) expect((await create()).status).toBe(503);
    refused.push(sent);
  };
  const stops = [
    ...Array.from({ length: 20 }, () => repeat(writeRefused)),
    repeat(async () => {
      for (const of of [path, `${USERS}?skip=1&is_active=true`, '/ready'])
        for (const { call } of [service, distributed]) reads.add((await call('GET', of)).status);
      for (const isOfOne of ["usename = 'account'", "usename <> 'account'"])
        sessions = Math.max(sessions, await postgres.countSessions(isOfOne));
      await sleep(20);
    }),
  ];
  await until('many writes are refused', () => refused.length > 100);
  await Promise.all(stops.map((stop) => stop()));

  expect(reads).toEqual(new Set([200]));
  expect(sessions).toBeLessThanOrEqual(MAX_SESSIONS);
  const visible = `SELECT FROM users WHERE email IN (${refused.map(({ email }) => `'${email}'`).join()})`;
  expect(await postgres.query(visible)).toEqual([]);

  await standby.start();
  await service.untilWritten();
  await until('all sessions are free', async () => (await postgres.countSessions("state = 'active'")) === 0);
  expect(await sendEach(service)).toEqual(EACH_SUCCEEDS);

  const again = refused.slice(0, 20);
  const stored = await Promise.all(again.map(write));
  expect(stored.map(({ status }) => status)).toEqual(again.map(() => 201));
  await postgres.kill();
  await standby.query('SELECT pg_promote()');
  await service.untilWritten();
  const replayed = await Promise.all(again.map(write));
  expect(replayed.map(({ body }) => body)).toEqual(stored.map(({ body }) => body));
});
