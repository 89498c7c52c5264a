import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Variables } from '../../lib/settings/settings.ts';
import { type DisposablePostgres, startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { errorResponse, messagesThrough, READY_FOR_QUERY } from '../stage/postgres-messages.ts';
import { startProxy, through } from '../stage/proxy.ts';
import { freshAddress, probe, readResponse, refusal, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startStandby } from '../stage/standby.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';

let issuer: Awaited<ReturnType<typeof startIssuer>>;
let one: DisposablePostgres;
let other: DisposablePostgres;

beforeAll(async () => {
  [issuer, one, other] = await Promise.all([
    startIssuer(),
    startDisposablePostgres(),
    startDisposablePostgres(),
  ]);
  // One instance can read what another has migrated.
  await Promise.all([one, other].map(async (postgres) => (await serviceOver([postgres])).stop()));
});

afterAll(() => Promise.all([issuer, one, other].map((started) => started.stop())));

type Server = { readonly host: string; readonly port: number };

/** Starts a service with these hosts, in this order. */
async function serviceOver(servers: readonly Server[], variables: Variables = {}) {
  const database = { ...one, drop: async () => [] };
  const service = await startService(
    {
      SVC_POSTGRES_HOST: servers.map(({ host }) => host).join(),
      SVC_POSTGRES_PORT: servers.map(({ port }) => port).join(),
      ...variables,
    },
    { database, issuer },
  );
  const call = async (...request: Parameters<typeof service.call>) =>
    readResponse(await service.call(...request));
  return {
    ...service,
    call,
    create: async () => await call('POST', USERS, { email: freshAddress() }),
    untilWritten: (seconds = 10) =>
      until(
        'a user is stored',
        async () => (await call('POST', USERS, { email: freshAddress() })).status === 201,
        {
          seconds,
        },
      ),
  };
}

/** Until `undo`, new sessions at this host accept no writes. */
async function takesNoWrites(postgres: DisposablePostgres) {
  await postgres.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
  await postgres.terminate();
  let isUndone = false;
  const undo = async () => {
    if (isUndone) return;
    isUndone = true;
    await postgres.query([
      'SET default_transaction_read_only = off',
      'ALTER DATABASE postgres RESET default_transaction_read_only',
    ]);
  };
  onTestFinished(undo);
  return undo;
}

const hasUser = async (postgres: DisposablePostgres, { body }: { body: unknown }) =>
  (await postgres.query(`SELECT FROM users WHERE id = '${(body as UserBody).id}'`)).length === 1;

describe('the service uses, of several hosts,', () => {
  test('the first one that accepts writes', async () => {
    const both = await serviceOver([other, one]);
    onTestFinished(both.stop);
    expect(await hasUser(other, await both.create())).toBe(true);

    await takesNoWrites(other);
    await both.untilWritten();
    expect(await hasUser(one, await both.create())).toBe(true);
    expect(await both.call('GET', '/ready')).toEqual(probe('ready'));
  });

  test('one that responds, while others refuse or never respond', async () => {
    const [away, silent] = [await startProxy(one), await startProxy(one)];
    onTestFinished(() => Promise.all([away.stop(), silent.stop()]).then(() => {}));
    await away.refuse();
    silent.stall();
    const service = await serviceOver([away, silent, one]);
    onTestFinished(service.stop);

    const statuses = await Promise.all(
      Array.from({ length: 30 }, async () => (await service.create()).status),
    );
    expect(new Set(statuses)).toEqual(new Set([201]));
  });

  test.each([
    ['a host does not report it', 'in_hot_standbi\0off'],
    ['a pooler reports the state before a failover', 'in_hot_standby\0on\0'],
  ])('one that reports that it accepts writes, if %s', async (_case, report) => {
    await takesNoWrites(one);
    const proxies = await Promise.all([one, other].map((postgres) => startProxy(postgres)));
    onTestFinished(() => Promise.all(proxies.map((proxy) => proxy.stop())).then(() => {}));
    for (const proxy of proxies) {
      proxy.answersThrough(() =>
        through(async (chunk, push) =>
          push(Buffer.from(chunk.toString('latin1').replace('in_hot_standby\0off', report), 'latin1')),
        ),
      );
    }
    const service = await serviceOver(proxies);
    onTestFinished(service.stop);

    expect(await hasUser(other, await service.create())).toBe(true);
  });

  test('none while all are unavailable, and then the one that recovers', async () => {
    const proxies = await Promise.all([one, other].map((postgres) => startProxy(postgres)));
    onTestFinished(() => Promise.all(proxies.map((proxy) => proxy.stop())).then(() => {}));
    const service = await serviceOver(proxies);
    onTestFinished(service.stop);
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

describe('while no host accepts writes', () => {
  test('reads are 200, writes 503 and /ready 200, until one does', async () => {
    const undos = [await takesNoWrites(one), await takesNoWrites(other)];
    const service = await serviceOver([one, other]);
    onTestFinished(service.stop);

    const reads = await Promise.all(
      Array.from({ length: 20 }, async () => (await service.call('GET', USERS)).status),
    );
    expect(new Set(reads)).toEqual(new Set([200]));
    expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
    expect(await service.call('GET', '/ready')).toEqual(probe('ready'));

    await undos[1]?.();
    await service.untilWritten();
    // No connection to the host without writes is left.
    const created = await Promise.all(Array.from({ length: 30 }, () => service.create()));
    expect(new Set(created.map(({ status }) => status))).toEqual(new Set([201]));
    for (const response of created) expect(await hasUser(other, response)).toBe(true);
    await until('it has no connection', async () => (await one.countSessions()) === 0);
  });
});

describe('when a standby is promoted', () => {
  test('reads continue, and writes continue after the promotion', async () => {
    const primary = await startDisposablePostgres();
    onTestFinished(primary.stop);
    const standby = await startStandby(primary);
    onTestFinished(standby.stop);
    const service = await serviceOver([standby, primary]);
    onTestFinished(service.stop);
    const written = await service.create();
    expect(written.status).toBe(201);
    await until('the standby has it', () => hasUser(standby, written));

    await primary.kill();
    const path = USERS + (written.body as UserBody).id;
    await until('reads are 200', async () => (await service.call('GET', path)).status === 200);
    expect(await service.create()).toEqual(refusal('service_unavailable_error', USERS));
    expect(await service.call('GET', '/ready')).toEqual(probe('ready'));

    await standby.query('SELECT pg_promote()');
    await service.untilWritten();
    expect(await hasUser(standby, await service.create())).toBe(true);
    expect((await service.call('GET', USERS + randomUUID())).status).toBe(404);
  });
});

test.each([
  ['one host', 1],
  ['a list of hosts', 2],
])(
  'with %s, sessions that end in the packet of their start are 503, and no other session ends',
  async (_case, count) => {
    const proxies = await Promise.all([one, other].slice(0, count).map((postgres) => startProxy(postgres)));
    onTestFinished(() => Promise.all(proxies.map((proxy) => proxy.stop())).then(() => {}));
    const service = await serviceOver(proxies);
    onTestFinished(service.stop);
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
  },
);
