import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { isUnreachable, withCode } from '../../lib/postgres/sessions/faults.ts';
import { type DisposablePostgres, startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { errorResponse, messageOf, messagesThrough, READY_FOR_QUERY } from '../stage/postgres-messages.ts';
import { startProxy, type TcpProxy } from '../stage/proxy.ts';
import { probe, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { times, until } from '../stage/until.ts';
import { type Address, migrateAlone, serviceOver, takesNoWrites } from './service-over.ts';

const one = forAllTests(() => startDisposablePostgres());
const other = forAllTests(() => startDisposablePostgres());
// One instance can read what another has migrated.
beforeAll(async () => void (await Promise.all([one, other].map(migrateAlone))));

const start = (hosts: readonly Address[]) => serviceOver(hosts, one);

/** Proxies in front of these servers, for one test. */
const proxiesOf = (...servers: readonly DisposablePostgres[]) =>
  Promise.all(servers.map((postgres) => forThisTest(startProxy, postgres)));

const hasUser = async (postgres: DisposablePostgres, { body }: { body: unknown }) =>
  (await postgres.query(`SELECT FROM users WHERE id = '${(body as UserBody).id}'`)).length === 1;

describe('the service uses, of several hosts,', () => {
  test('the first one that accepts writes', async () => {
    const both = await start([other, one]);
    expect(await hasUser(other, await both.create())).toBe(true);

    await takesNoWrites(other);
    await both.untilWritten();
    expect(await hasUser(one, await both.create())).toBe(true);
    expect(await both.call('GET', '/ready')).toEqual(probe('ready'));
  });

  test('one that responds, while others refuse or never respond', async () => {
    const [away, silent] = (await proxiesOf(one, one)) as [TcpProxy, TcpProxy];
    await away.refuse();
    silent.stall();
    const service = await start([away, silent, one]);

    const statuses = await times(30, async () => (await service.create()).status);
    expect(new Set(statuses)).toEqual(new Set([201]));
  });

  test.each([
    ['a host does not report it', 'in_hot_standbi\0off\0'],
    ['a pooler reports the state before a failover', 'in_hot_standby\0on\0'],
  ])('one that reports that it accepts writes, if %s', async (_case, report) => {
    await takesNoWrites(one);
    const proxies = await proxiesOf(one, other);
    for (const proxy of proxies) {
      proxy.answersThrough(() =>
        messagesThrough((type, message) =>
          message.includes('in_hot_standby\0off') ? messageOf(type, report) : message,
        ),
      );
    }
    const service = await start(proxies);

    expect(await hasUser(other, await service.create())).toBe(true);
  });

  test('none while all are unavailable, and then the one that recovers', async () => {
    const proxies = await proxiesOf(one, other);
    const service = await start(proxies);
    await Promise.all(proxies.map((proxy) => proxy.refuse()));

    expect(await service.call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
    expect(await service.call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));

    await proxies[1]?.pass();
    await service.untilWritten();
    expect(await hasUser(other, await service.create())).toBe(true);
    expect(await service.call('GET', '/ready')).toEqual(probe('ready'));
  });
});

test('twenty requests at once after the end of all sessions cause no warning of Node.js', async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error) => void warnings.push(warning);
  process.on('warning', keep);
  onTestFinished(() => void process.off('warning', keep));
  const service = await serviceOver([one, other], one, { SVC_POSTGRES_POOL_SIZE: '20' });
  await service.untilWritten();
  // One session is then opened for each, and all of them end the one that was asked whether the host accepts writes.
  expect(await one.terminate("query NOT ILIKE 'show%'")).toBeGreaterThan(0);
  const pages = await times(20, (n) => service.call('GET', `${USERS}changes?limit=${n + 1}`));

  expect(pages.map(({ status }) => status)).toEqual(pages.map(() => 200));
  expect(warnings).toEqual([]);
});

test('while no host accepts writes, reads are 200, writes 503 and /ready 200, until one does', async () => {
  const undos = [await takesNoWrites(one), await takesNoWrites(other)];
  const service = await start([one, other]);

  const reads = await times(20, async () => (await service.call('GET', USERS)).status);
  expect(new Set(reads)).toEqual(new Set([200]));
  expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
  expect(await service.call('GET', '/ready')).toEqual(probe('ready'));

  await undos[1]?.();
  await service.untilWritten();
  // No connection to the host without writes is left.
  const created = await times(30, service.create);
  expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]));
  for (const response of created) expect(await hasUser(other, response)).toBe(true);
  await until('it has no connection', async () => (await one.countSessions()) === 0);
});

test.each(['/nowhere', 'unknown.invalid'])(
  'a standby serves reads while the first host is %s, which no session can be opened at',
  async (host) => {
    await takesNoWrites(other);
    const service = await start([{ host, port: 5432 }, other]);

    expect((await service.call('GET', USERS)).status).toBe(200);
    expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
  },
);

test('no standby serves reads while the first host requires a mechanism that the service lacks: 503', async () => {
  const [proxy] = (await proxiesOf(one)) as [TcpProxy];
  await takesNoWrites(other);
  const service = await start([proxy, other]);
  proxy.answersThrough(() =>
    messagesThrough((type) => (type === 'R' ? messageOf('R', '\0\0\0\x0aSCRAM-SHA-512\0\0') : undefined)),
  );
  proxy.cutAll();

  for (let asked = 0; asked < 5; asked += 1)
    expect(await service.call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
});

/** A fault with this code, of PostgreSQL if it has a severity. */
const coded = (code: string, severity?: string) => Object.assign(new Error(code), { code, severity });

// A host that refuses a session may accept the writes of others.
test.each([
  [coded('ENOENT'), true],
  [coded('ENOTFOUND'), true],
  [coded('EPIPE'), true],
  [coded('ERR_SSL_WRONG_VERSION_NUMBER'), true],
  [coded('57P03', 'FATAL'), true],
  [coded('EPROTO'), true],
  [coded('53300', 'FATAL'), false],
  [coded('CERT_HAS_EXPIRED'), false],
  [coded('ERR_TLS_CERT_ALTNAME_INVALID'), false],
  [withCode(new Error('gss'), 'authentication'), false],
])('a host is out of reach, and does not only refuse a session: %s: %s', (fault, isAway) =>
  expect(isUnreachable(fault)).toBe(isAway),
);

test('sessions that end in the packet of their start are 503, and no other session ends', async () => {
  const proxies = await proxiesOf(one, other);
  const service = await start(proxies);
  for (const proxy of proxies) {
    proxy.answersThrough(() =>
      messagesThrough((type, message) =>
        type === READY_FOR_QUERY ? Buffer.concat([message, errorResponse('57P01')]) : message,
      ),
    );
    proxy.cutAll();
  }

  for (let asked = 0; asked < 5; asked += 1)
    expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
  for (const proxy of proxies) await proxy.pass();
  await service.untilWritten();
});
