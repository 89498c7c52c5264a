import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { ROLE_SETTINGS } from '../../lib/settings/role-settings.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT } from '../stage/locks.ts';
import { errorResponse } from '../stage/postgres-messages.ts';
import { startProxy } from '../stage/proxy.ts';
import { USERS } from '../stage/responses.ts';
import { answerAtStart } from '../stage/session-start.ts';
import { times, until } from '../stage/until.ts';
import { serviceOver, takesNoWrites } from './service-over.ts';

const postgres = forAllTests(() => startDisposablePostgres());
const proxy = forAllTests(() => startProxy(postgres));

async function start(variables = {}) {
  const service = await serviceOver([proxy], postgres, variables);
  const find = async (name: string) => (await service.events()).filter(({ event }) => event === name);
  return { ...service, find, address: `${proxy.host}:${proxy.port}` };
}

test('an outage of PostgreSQL is logged once with its cause, again if the cause changes, and at its end', async () => {
  const { call, find, untilRead, address } = await start();
  await proxy.refuse();
  for (let count = 0; count < 5; count += 1) await call('GET', USERS);
  await until('it is logged', async () => (await find('postgres_unavailable')).length > 0);
  // The same cause is not logged again, not even after a second.
  await sleep(1100);
  await call('GET', USERS);
  await proxy.pass();
  answerAtStart(proxy, errorResponse('57P03'));
  await until('the new cause is logged', async () => {
    await call('GET', USERS);
    return (await find('postgres_unavailable')).length > 1;
  });
  await proxy.pass();
  await untilRead(200);

  const expected = { level: 'error', hosts: [address] };
  expect(await find('postgres_unavailable')).toMatchObject([
    { ...expected, cause: { code: 'ECONNREFUSED', message: expect.stringContaining('ECONNREFUSED') } },
    { ...expected, cause: { code: '57P03', message: 'fault' } },
  ]);
  const available = { level: 'info', duration_ms: expect.any(Number) };
  expect(await find('postgres_available')).toMatchObject([available]);
  for (const event of await find('postgres_unavailable')) {
    expect(event).not.toHaveProperty('request_id');
    expect(event.cause).not.toHaveProperty('stack');
  }
});

test('refused further sessions are logged once a second at most, with their number', async () => {
  const { create, find, address } = await start(PATIENT);
  await create();
  answerAtStart(proxy, errorResponse('53300'));
  // While statements wait, further sessions are tried.
  const lock = await forThisTest(holdUsers, postgres);
  const creates = times(6, create);
  await until('a later line counts several', async () =>
    (await find('postgres_sessions_refused')).some(({ count }) => Number(count) > 1),
  );
  await lock.release();
  await creates;

  const events = await find('postgres_sessions_refused');
  expect(events[0]).toMatchObject({ level: 'warning', host: address, reason: '53300: fault', count: 1 });
  const at = events.map(({ timestamp }) => Date.parse(String(timestamp)));
  expect(Number(at[1]) - Number(at[0])).toBeGreaterThanOrEqual(950);
});

test('the end of a session during a statement is logged with what PostgreSQL says', async () => {
  const { create, call, find, address } = await start();
  const { id } = (await create()).body as { id: string };
  await Promise.all([
    call('POST', `${USERS}batch`, { items: [{ email: `${id}@example.com` }] }),
    postgres.query(`SELECT pg_sleep(0.1)`),
  ]);
  await postgres.query(`
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(5); RETURN new; END $$;
    CREATE TRIGGER wait BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION wait()`);
  onTestFinished(async () => void (await postgres.query('DROP FUNCTION wait CASCADE')));
  const response = create();
  await until('a statement runs', async () => (await postgres.terminate("wait_event = 'PgSleep'")) > 0);

  expect((await response).status).toBe(503);
  await until('it is logged', async () => (await find('postgres_session_closed')).length > 0);
  expect(await find('postgres_session_closed')).toMatchObject([
    {
      level: 'warning',
      host: address,
      reason: expect.stringMatching(/^57P01: terminating connection/),
      count: 1,
    },
  ]);
});

test('a host that ceases to accept writes, and accepts them again, is logged', async () => {
  const { create, find, untilWritten, address } = await start();
  await create();
  const undo = await takesNoWrites(postgres);
  await until('writes are 503', async () => (await create()).status === 503);
  await until('it is logged', async () => (await find('postgres_host_changed')).length > 0);
  await undo();
  await postgres.terminate();
  await untilWritten();

  await until('the second change is logged', async () => (await find('postgres_host_changed')).length > 1);
  expect(await find('postgres_host_changed')).toMatchObject([
    { level: 'warning', from: address, to: address, accepts_writes: false, reason: 'it accepts no writes' },
    { level: 'warning', from: address, to: address, accepts_writes: true, reason: 'it accepts writes' },
  ]);
});

test.each([{ SVC_POSTGRES_POOLER: 'transaction' }, { SVC_POSTGRES_ENGINE: 'distributed' }])(
  'a role without statement_timeout is logged once with %o, and not if it has one',
  async (variables) => {
    const role = `role_${randomBytes(4).toString('hex')}`;
    await postgres.query(`CREATE ROLE ${role} SUPERUSER LOGIN`);
    onTestFinished(async () => void (await postgres.query(`DROP ROLE ${role}`)));
    const user = { ...variables, SVC_POSTGRES_USER: role, SVC_POSTGRES_MIGRATE: 'false' };
    const unlimited = await start(user);
    await Promise.all([unlimited.create(), unlimited.create()]);
    await postgres.query(`ALTER ROLE ${role} SET statement_timeout = '4s'`);
    const limited = await start(user);
    await limited.create();

    expect(await unlimited.find('statement_timeout_missing')).toMatchObject([{ level: 'warning' }]);
    const [, ...settings] = Object.keys(ROLE_SETTINGS).filter(
      (name) => name !== 'default_transaction_isolation',
    );
    expect(await unlimited.find('role_settings_missing')).toMatchObject([{ level: 'warning', settings }]);
    expect(await limited.find('statement_timeout_missing')).toEqual([]);
  },
);
