import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { forAllTests } from '../stage/for-all-tests.ts';
import { freshKey } from '../stage/keyed.ts';
import { addressOf, startProxy, through } from '../stage/proxy.ts';
import { freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const CALLERS = 30;
/** Maximum number of writes in progress on the connections for writes. */
const MAX_WRITES_IN_PROGRESS = 9;

const proxy = forAllTests(() => startProxy(inject('postgres')));

const service = serviceUnderTest(() => ({
  ...addressOf(proxy),
  SVC_POSTGRES_POOL_TIMEOUT: '3',
}));

/** The path of a user. A connection that died in the test before may cost one request. */
const storedUser = () =>
  until('a user', async () => {
    const { status, body } = await service.call('POST', USERS, { email: freshAddress() });
    return status === 201 && USERS + (body as UserBody).id;
  });

/** The network forgets all connections: those for reads, for writes and for statements with a session of their own. */
async function withDeadConnections(): Promise<string> {
  const path = await storedUser();
  await until('no more connections are opened', async () => {
    const before = proxy.accepted;
    await Promise.all(
      Array.from({ length: CALLERS }, () => [
        service.call('GET', path),
        service.call('PATCH', path, {}),
        service.call('GET', `${USERS}?skip=1&limit=1000`),
      ]).flat(),
    );
    return proxy.accepted === before;
  });
  proxy.forget();
  return path;
}

test('reads on connections that the network forgot are all 200', async () => {
  const path = await withDeadConnections();
  const responses = await Promise.all(Array.from({ length: CALLERS }, () => service.call('GET', path)));

  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
});

test('writes on a connection that the network forgot are 503, and later writes are not', async () => {
  const path = await withDeadConnections();
  const write = async (full_name: string) => (await service.call('PATCH', path, { full_name })).status;
  const statuses = await Promise.all(Array.from({ length: CALLERS }, (_, n) => write(`${n}`)));
  const refused = statuses.filter((status) => status !== 200);

  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThanOrEqual(MAX_WRITES_IN_PROGRESS);
  expect(refused).toEqual(refused.map(() => 503));
  expect(await write('afterwards')).toBe(200);
});

test('the dead connections cost a caller that writes one after another at most one 503', async () => {
  const path = await withDeadConnections();
  const statuses: number[] = [];
  for (let write = 0; write < 12; write += 1) {
    statuses.push((await service.call('PATCH', path, { full_name: `${write}` })).status);
  }

  expect(statuses.filter((status) => status !== 200).length).toBeLessThanOrEqual(1);
});

test.each(['POST', 'PATCH'])(
  'a %s that reaches PostgreSQL 1.5 s late succeeds, and so do others',
  async (method) => {
    proxy.requestsThrough(() =>
      through(async (chunk, push) => {
        if (chunk.includes('begun late')) await sleep(1500);
        push(chunk);
      }),
    );
    onTestFinished(() => proxy.pass());
    proxy.cutAll();
    const path = await storedUser();
    const write = async (full_name: string) => {
      const headers = { 'idempotency-key': freshKey() };
      if (method === 'PATCH') return (await service.call('PATCH', path, { full_name })).status;
      return (await service.call('POST', USERS, { email: freshAddress(), full_name }, { headers })).status;
    };
    await Promise.all(Array.from({ length: CALLERS }, (_, n) => write(`${n}`)));
    const late = write('begun late');
    const others = Array.from({ length: CALLERS }, async (_, n) => {
      await sleep(50 * n);
      return write(`${n}`);
    });

    expect(new Set(await Promise.all([late, ...others]))).toEqual(new Set([method === 'POST' ? 201 : 200]));
  },
);
