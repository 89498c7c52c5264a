import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Variables } from '../../lib/settings/environment.ts';
import { CHANGES, change, nextOf } from '../stage/changes.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { errorResponse, messagesThrough } from '../stage/postgres-messages.ts';
import { lateAtFirst, startProxy, type TcpProxy } from '../stage/proxy.ts';
import { probe, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { answerAtStart } from '../stage/session-start.ts';
import { startStandby } from '../stage/standby.ts';
import { until } from '../stage/until.ts';
import { type Address, migrateAlone, serviceOver } from './service-over.ts';

/** The replication lag of the standby in milliseconds. */
const LAG = 400;

const primary = forAllTests(() => startDisposablePostgres());
const standby = forAllTests(() => startStandby(primary, { recovery_min_apply_delay: `${LAG}ms` }));
const toPrimary = forAllTests(() => startProxy(primary));
const toStandby = forAllTests(() => startProxy(standby));
beforeAll(() => migrateAlone(primary));

const start = (hosts: readonly Address[], variables: Variables = {}) =>
  serviceOver(hosts, primary, variables);

/** Until the test ends, new sessions at this host take this many milliseconds. */
function delaySessions(proxy: TcpProxy, milliseconds: number): void {
  proxy.answersThrough(lateAtFirst(milliseconds));
  onTestFinished(() => proxy.pass());
}

test.each([
  ['before', () => [toPrimary, toStandby]],
  ['after', () => [toStandby, toPrimary]],
] as const)(
  'a primary %s its standby in the list is used even if it needs 800 ms to open a session',
  async (_place, hosts) => {
    delaySessions(toPrimary, 800);
    const service = await start(hosts(), { SVC_POSTGRES_POOL_TIMEOUT: '3' });

    expect((await service.create()).status).toBe(201);
    await primary.terminate();
    await service.untilWritten();
  },
);

test('a primary that becomes slow is still used, and reads see every write', async () => {
  const service = await start([toStandby, toPrimary], { SVC_POSTGRES_POOL_TIMEOUT: '3' });
  expect((await service.create()).status).toBe(201);

  delaySessions(toPrimary, 700);
  for (let round = 0; round < 3; round += 1) {
    await primary.terminate('pid in (select pid from pg_stat_activity order by random() limit 3)');
    const { body } = await service.untilWritten();
    const path = USERS + (body as UserBody).id;
    const statuses = new Set<number>();
    for (let read = 0; read < 10; read += 1) statuses.add((await service.call('GET', path)).status);
    expect([...statuses].filter((other) => other !== 503)).toEqual([200]);
    const updated = await service.call('PATCH', path, { full_name: 'x' });
    expect([404, 412]).not.toContain(updated.status);
  }
});

test('a primary that accepts no further session is not treated as a standby', async () => {
  const service = await start([toPrimary, toStandby]);
  await service.create();
  answerAtStart(toPrimary, errorResponse('53300'));
  const attempts = toPrimary.accepted;
  const began = performance.now();

  // The sessions end one after another, and cannot be replaced.
  for (let ended = 0; ended < 6; ended += 1) {
    await primary.terminate('pid = (select max(pid) from pg_stat_activity where application_name <> $$$$)');
    const response = await service.create();
    expect([404, 409, 412]).not.toContain(response.status);
    if (response.status !== 201) continue;
    const path = USERS + (response.body as UserBody).id;
    expect((await service.call('GET', path)).status).not.toBe(404);
    expect([404, 412]).not.toContain((await service.call('PATCH', path, {})).status);
  }
  await primary.terminate();
  for (let asked = 0; asked < 10; asked += 1)
    expect(await service.call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));

  const seconds = (performance.now() - began) / 1000;
  // Without connections of /ready, which this test does not request.
  expect(toPrimary.accepted - attempts).toBeLessThanOrEqual(5 * (seconds + 1));
});

// With one create, the session that ends is the only one for writes, and a write must not wait until each host was asked.
test.each([1, 20])(
  'while the primary accepts no connection after %s creates, and its sessions continue, reads see every write',
  async (creates) => {
    const service = await start([toPrimary, toStandby], { SVC_POSTGRES_POOL_TIMEOUT: '0.4' });
    await Promise.all(Array.from({ length: creates }, service.create));
    toPrimary.leadTo({ host: '127.0.0.1', port: 1 });
    onTestFinished(() => toPrimary.leadTo(primary));
    const oldest = "pid = (select min(pid) from pg_stat_activity where query like '%insert into users%')";
    const { open } = toPrimary;
    expect(await primary.terminate(oldest)).toBe(1);
    // A write that is sent meanwhile is 503.
    await until('the session has ended', () => toPrimary.open < open);

    const statuses = new Set<string>();
    for (const ended = performance.now() + 3000; performance.now() < ended; ) {
      const { status, body } = await service.create();
      const read = await service.call('GET', USERS + (body as UserBody).id);
      statuses.add(`create ${status}, read ${read.status}`);
    }
    expect([...statuses]).toEqual(['create 201, read 200']);
  },
);

test('a standby is used while no host accepts writes, and no longer when one does', async () => {
  const service = await start([toPrimary, toStandby]);
  const { body } = await service.create();
  const path = USERS + (body as UserBody).id;
  const stored = `SELECT FROM users WHERE id = '${(body as UserBody).id}'`;
  await until('the standby has it', async () => (await standby.query(stored)).length === 1);
  await toPrimary.refuse();

  await service.untilRead(200, { path, seconds: 3 });
  expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
  expect(await service.call('GET', '/ready')).toEqual(probe('ready'));

  await toPrimary.pass();
  const created = await service.untilWritten(3);
  expect((await service.call('GET', USERS + (created.body as UserBody).id)).status).toBe(200);
});

test('a standby is left when the primary is available again and accepts no further session', async () => {
  delaySessions(toStandby, 300);
  const service = await start([toPrimary, toStandby], { SVC_POSTGRES_POOL_TIMEOUT: '4' });
  await toPrimary.refuse();
  await service.untilRead(200, { seconds: 5 });
  answerAtStart(toPrimary, errorResponse('53300'));
  await toPrimary.accept();
  await service.untilRead(503, { seconds: 3 });
  await toPrimary.pass();
  await service.untilWritten(3);
});

test('a standby that does not report its state is used after one of its sessions was lost', async () => {
  for (const proxy of [toPrimary, toStandby]) {
    proxy.answersThrough(() =>
      messagesThrough((_type, message) => (message.includes('in_hot_standby') ? undefined : message)),
    );
    onTestFinished(() => proxy.pass());
  }
  const service = await start([toPrimary, toStandby]);
  await toPrimary.refuse();
  for (const path of [USERS, CHANGES]) await service.untilRead(200, { path, seconds: 5 });

  expect(await standby.terminate("query not like 'with head%'")).toBeGreaterThan(0);
  await service.untilRead(200, { seconds: 3 });
});

test('a cursor that is ahead of the standby is valid again when the primary is available', async () => {
  await standby.query('SELECT pg_wal_replay_pause()');
  onTestFinished(async () => void (await standby.query('SELECT pg_wal_replay_resume()')));
  const service = await start([toPrimary, toStandby]);
  const created = await service.create();
  const end = nextOf(await service.call('GET', `${CHANGES}?cursor=now&limit=0`));
  await toPrimary.refuse();
  await service.untilRead(200, { seconds: 5 });

  for (const path of [`${end}&limit=100`, `${end}&limit=100&wait=1`]) {
    const page = await service.call('GET', path);
    expect([page.status, page.body, nextOf(page)]).toEqual([200, [], path]);
  }

  await toPrimary.pass();
  const next = (await service.untilWritten()).body as UserBody;
  const { body } = await service.call('GET', end);
  expect(created.status).toBe(201);
  expect(body).toEqual([change('user.created', next, 1)]);
});
