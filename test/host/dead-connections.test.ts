import { beforeAll, expect, inject, test } from 'vitest';
import { freshAddress, type UserBody } from '../stage/answers.ts';
import { startProxy } from '../stage/proxy.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';
const CALLERS = 30;
const CONNECTIONS = 10;

let proxy: Awaited<ReturnType<typeof startProxy>>;

beforeAll(async () => {
  proxy = await startProxy(inject('postgres'));
  return () => proxy.stop();
});

const service = serviceUnderTest(() => ({
  SVC_POSTGRES_HOST: proxy.host,
  SVC_POSTGRES_PORT: String(proxy.port),
  SVC_POSTGRES_POOL_TIMEOUT: '3',
}));

/** The connections of a full pool are forgotten by the network; resolves with a user that is there. */
async function withDeadConnections(): Promise<string> {
  const body = (await service.call('POST', USERS, { email: freshAddress() })).body as UserBody;
  await until('the pool is full', async () => {
    const before = proxy.accepted;
    await Promise.all(Array.from({ length: CALLERS }, () => service.call('GET', `${USERS}?limit=1000`)));
    return proxy.accepted === before && before >= CONNECTIONS;
  });
  proxy.forget();
  return USERS + body.id;
}

test('reads over connections that have died without a word are answered, all of them', async () => {
  const path = await withDeadConnections();
  const answers = await Promise.all(Array.from({ length: CALLERS }, () => service.call('GET', path)));

  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
});

test('of writes only those are 503 that were sent on a dead connection, and no later one', async () => {
  const path = await withDeadConnections();
  const write = async (full_name: string) => (await service.call('PATCH', path, { full_name })).status;
  const statuses = await Promise.all(Array.from({ length: CALLERS }, (_, n) => write(`${n}`)));
  const refused = statuses.filter((status) => status !== 200);

  expect(refused.length).toBeLessThanOrEqual(CONNECTIONS);
  expect(refused).toEqual(refused.map(() => 503));
  expect(await write('afterwards')).toBe(200);
});

test('one caller finds out once that all connections are dead', async () => {
  const path = await withDeadConnections();
  const statuses: number[] = [];
  for (let write = 0; write < 12; write += 1) {
    statuses.push((await service.call('PATCH', path, { full_name: `${write}` })).status);
  }

  expect(statuses.filter((status) => status !== 200).length).toBeLessThanOrEqual(1);
});
