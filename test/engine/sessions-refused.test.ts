import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type DisposablePostgres, startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { errorResponse, messagesThrough } from '../stage/postgres-messages.ts';
import { startProxy, type TcpProxy } from '../stage/proxy.ts';
import { freshAddress, readResponse, refusal, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';

const AUTHENTICATION = 'R';
const BACKEND_KEY_DATA = 'K';

let issuer: Awaited<ReturnType<typeof startIssuer>>;
let postgres: DisposablePostgres;
let other: DisposablePostgres;
let proxy: TcpProxy;

beforeAll(async () => {
  [issuer, postgres, other] = await Promise.all([
    startIssuer(),
    startDisposablePostgres(),
    startDisposablePostgres(),
  ]);
  proxy = await startProxy(postgres);
  await (await serviceOver(other)).stop();
});

afterAll(() => Promise.all([proxy, issuer, postgres, other].map((started) => started.stop())));

async function serviceOver(host: { readonly host: string; readonly port: number }) {
  const service = await startService(
    { SVC_POSTGRES_HOST: host.host, SVC_POSTGRES_PORT: String(host.port) },
    { database: { ...postgres, drop: async () => [] }, issuer },
  );
  const call = async (...request: Parameters<typeof service.call>) =>
    readResponse(await service.call(...request));
  return { ...service, call, create: () => call('POST', USERS, { email: freshAddress() }) };
}

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
  const service = await serviceOver(proxy);
  onTestFinished(service.stop);
  const path = USERS + ((await service.create()).body as UserBody).id;
  const read = () => service.call('GET', path);
  const before = await statusesFor(1500, 16, service.create);
  await statusesFor(100, 4, read);

  proxy.answersThrough(() =>
    messagesThrough((type, message) => (type === AUTHENTICATION ? errorResponse('53300') : message)),
  );
  onTestFinished(() => proxy.pass());
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
  expect(writesNow.length).toBeGreaterThan(before.length / 3);
  expect(proxy.accepted - attempts).toBeLessThanOrEqual(5 * 4);
});

test('while PostgreSQL is read-only, refused writes keep their sessions, and one session a second checks for recovery', async () => {
  const service = await serviceOver(proxy);
  onTestFinished(service.stop);
  const path = USERS + ((await service.create()).body as UserBody).id;
  await statusesFor(200, 16, service.create);
  await postgres.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
  const undo = () =>
    postgres.query([
      'SET default_transaction_read_only = off',
      'ALTER DATABASE postgres RESET default_transaction_read_only',
    ]);
  onTestFinished(async () => void (await undo()));
  await postgres.terminate();
  await until('reads are 200', async () => (await service.call('GET', path)).status === 200);
  await statusesFor(500, 16, service.create);

  const attempts = proxy.accepted;
  const statuses = await statusesFor(3000, 8, service.create);
  expect(new Set(statuses)).toEqual(new Set([503]));
  expect(proxy.accepted - attempts).toBeLessThanOrEqual(4);
  expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));

  await undo();
  await until('a user is stored', async () => (await service.create()).status === 201, { seconds: 3 });
});

test('when the name resolves to another host, the service connects there', async () => {
  const service = await serviceOver(proxy);
  onTestFinished(service.stop);
  await service.create();
  await postgres.query('ALTER SYSTEM SET default_transaction_read_only = on');
  await postgres.query('SELECT pg_reload_conf()');
  onTestFinished(async () => {
    await postgres.query([
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
    ]);
    await postgres.query('SELECT pg_reload_conf()');
  });
  await until('writes are 503', async () => (await service.create()).status === 503);

  proxy.leadTo(other);
  onTestFinished(() => proxy.leadTo(postgres));
  const created = await until(
    'a user is stored',
    async () => {
      const response = await service.create();
      return response.status === 201 && response;
    },
    { seconds: 3 },
  );
  const { id } = created.body as UserBody;
  expect(await other.query(`SELECT FROM users WHERE id = '${id}'`)).toHaveLength(1);
  await until('no session is left', async () => (await postgres.countSessions()) === 0, { seconds: 3 });
});

test.each([
  [
    'session ids differ from PostgreSQL’s process ids',
    () =>
      proxy.answersThrough(() =>
        messagesThrough((type, message) => {
          if (type === BACKEND_KEY_DATA) message.writeInt32BE(message.readInt32BE(5) + 100_000, 5);
          return message;
        }),
      ),
  ],
  ['the name resolves to another host later', () => {}],
])('a slow write is not treated as a lost connection if %s', async (_case, interfere) => {
  interfere();
  const service = await serviceOver(proxy);
  onTestFinished(() => proxy.pass());
  onTestFinished(service.stop);
  const email = freshAddress();
  expect((await service.call('POST', `${USERS}batch`, { items: [{ email: freshAddress() }] })).status).toBe(
    201,
  );
  const holding = holdFor(1500, email);
  await sleep(100);
  proxy.leadTo(other);
  onTestFinished(() => proxy.leadTo(postgres));

  const { status } = await service.call('POST', `${USERS}batch`, { items: [{ email }] });
  expect(status).toBe(201);
  await holding;
});

/** For this many milliseconds another transaction writes a user with this email. */
const holdFor = (milliseconds: number, email: string) =>
  postgres.query([
    'BEGIN',
    `INSERT INTO users (id, email) VALUES (gen_random_uuid(), '${email}')`,
    `SELECT pg_sleep(${milliseconds / 1000})`,
    'ROLLBACK',
  ]);
