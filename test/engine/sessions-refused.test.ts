import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { holdEmail } from '../stage/locks.ts';
import { errorResponse, messagesThrough } from '../stage/postgres-messages.ts';
import { startProxy } from '../stage/proxy.ts';
import { BATCH, freshAddress, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { answerAtStart } from '../stage/session-start.ts';
import { until } from '../stage/until.ts';
import { migrateAlone, serviceOver, takesNoWrites } from './service-over.ts';

const BACKEND_KEY_DATA = 'K';

const postgres = forAllTests(() => startDisposablePostgres());
const other = forAllTests(() => startDisposablePostgres());
const proxy = forAllTests(() => startProxy(postgres));
beforeAll(() => migrateAlone(other));

const start = () => serviceOver([proxy], postgres);

/** The statuses of the responses to `callers` callers during this many milliseconds. */
async function statusesFor(
  milliseconds: number,
  callers: number,
  send: () => Promise<{ status: number }>,
): Promise<readonly number[]> {
  const statuses: number[] = [];
  const ended = performance.now() + milliseconds;
  const caller = async () => {
    while (performance.now() < ended) statuses.push((await send()).status);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return statuses;
}

test('without room for another session, the existing sessions serve reads and writes', async () => {
  const service = await start();
  const path = USERS + ((await service.create()).body as UserBody).id;
  const read = () => service.call('GET', path);
  const before = await statusesFor(1500, 16, service.create);
  await statusesFor(100, 4, read);

  answerAtStart(proxy, errorResponse('53300'));
  const writes = "query like 'insert into users%' or query like 'with %insert into users%'";
  await postgres.terminate(`pid = (select min(pid) from pg_stat_activity where ${writes})`);
  await sleep(100);
  const attempts = proxy.accepted;
  const [reads, writesNow] = await Promise.all([
    statusesFor(3000, 4, read),
    statusesFor(1500, 16, service.create),
  ]);

  expect(new Set(reads)).toEqual(new Set([200]));
  expect(new Set(writesNow)).toEqual(new Set([201]));
  expect(writesNow.length).toBeGreaterThan(before.length / 10);
  expect(proxy.accepted - attempts).toBeLessThanOrEqual(5 * 4);
});

test('while PostgreSQL is read-only, refused writes keep their sessions, and one session a second checks for recovery', async () => {
  const service = await serviceOver([proxy], postgres, { SVC_POSTGRES_POOL_TIMEOUT: '4' });
  const path = USERS + ((await service.create()).body as UserBody).id;
  await statusesFor(200, 16, service.create);
  const undo = await takesNoWrites(postgres);
  await service.untilRead(200, { path });
  await statusesFor(500, 16, service.create);

  const attempts = proxy.accepted;
  expect(new Set(await statusesFor(3000, 8, service.create))).toEqual(new Set([503]));
  expect(proxy.accepted - attempts).toBeLessThanOrEqual(4);
  expect(await postgres.countSessions("query like 'show transaction_read_only%'")).toBeLessThanOrEqual(2);
  expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
  for (const method of ['PATCH', 'DELETE'])
    expect(await service.call(method, path, {})).toEqual(refusal('service_unavailable_error', path));
  expect((await service.call('GET', path)).status).toBe(200);

  await undo();
  await service.untilWritten(3);
});

test('when the name resolves to another host, the service connects there', async () => {
  const service = await start();
  await service.create();
  await postgres.query(['ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()']);
  onTestFinished(async () => {
    await postgres.query([
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    ]);
  });
  await until('writes are 503', async () => (await service.create()).status === 503);

  proxy.leadTo(other);
  onTestFinished(() => proxy.leadTo(postgres));
  const { id } = (await service.untilWritten(3)).body as UserBody;
  expect(await other.query(`SELECT FROM users WHERE id = '${id}'`)).toHaveLength(1);
  await until('no session is left', async () => (await postgres.countSessions()) === 0, { seconds: 3 });
});

test.each([
  ['session ids differ from PostgreSQL’s process ids', 100_000],
  ['the name resolves to another host later', 0],
])('a slow write is not treated as a lost connection if %s', async (_case, difference) => {
  proxy.answersThrough(() =>
    messagesThrough((type, message) => {
      if (type === BACKEND_KEY_DATA) message.writeInt32BE(message.readInt32BE(5) + difference, 5);
      return message;
    }),
  );
  onTestFinished(() => proxy.pass());
  const service = await start();
  const email = freshAddress();
  const write = async (address: string) =>
    (await service.call('POST', BATCH, { items: [{ email: address }] })).status;
  expect(await write(freshAddress())).toBe(201);
  const held = await holdEmail(postgres, email);
  const released = sleep(1500).then(held.release);
  proxy.leadTo(other);
  onTestFinished(() => proxy.leadTo(postgres));

  expect(await write(email)).toBe(201);
  await released;
});
