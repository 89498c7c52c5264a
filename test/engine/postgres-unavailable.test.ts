import { describe, expect, inject, test } from 'vitest';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { freshAddress, probe, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { timed, times, until } from '../stage/until.ts';

const UNKNOWN = `${USERS}11111111-1111-1111-1111-111111111111`;

describe('while PostgreSQL is unavailable', () => {
  const proxy = forAllTests(() => startProxy(inject('postgres')));

  const service = serviceUnderTest(() => addressOf(proxy));
  const { call } = service;

  // The longest wait of the service itself is 4.25 seconds.
  test.each([
    ['refuses connections', () => proxy.refuse()],
    ['cuts connections', async () => proxy.reset()],
    ['never responds', async () => proxy.stall()],
  ])(
    'because it %s: /health 200, /ready 503 within a second, operations 503, recovery by itself',
    async (_case, depart) => {
      // Idle connections of the pool are among the lost ones.
      expect((await call('POST', USERS, { email: freshAddress() })).status).toBe(201);
      await depart();

      const { value, milliseconds } = await timed(call('GET', '/ready'));
      expect(value).toEqual(refusal('service_unavailable_error', '/ready'));
      expect(milliseconds).toBeLessThan(2000);
      expect(await call('GET', '/health')).toEqual(probe('healthy'));

      const operations = await Promise.all([
        timed(call('POST', USERS, { email: freshAddress() })),
        timed(call('GET', USERS)),
        timed(call('GET', UNKNOWN)),
        timed(call('PATCH', UNKNOWN, {})),
        timed(call('DELETE', UNKNOWN)),
      ]);
      expect(operations.map((operation) => operation.value)).toEqual(
        [USERS, USERS, UNKNOWN, UNKNOWN, UNKNOWN].map((path) => refusal('service_unavailable_error', path)),
      );
      expect(Math.max(...operations.map((operation) => operation.milliseconds))).toBeLessThan(6000);

      await proxy.pass();
      await until('/ready is 200', async () => (await fetch(`${service.url}/ready`)).ok, { seconds: 5 });
      const isStored = async () => (await call('POST', USERS, { email: freshAddress() })).status === 201;
      await until('a user is stored', isStored, { seconds: 5 });
      const responses = await times(30, () => call('GET', `${USERS}?limit=1`));
      expect(responses.map(({ status }) => status)).toEqual(Array(30).fill(200));
    },
  );

  test('the refusals are errors in the log, with their cause and without values', async () => {
    const events = await service.events();

    const refused = events.filter(({ path, status_code }) => path === USERS && status_code === 503);
    expect(refused).not.toEqual([]);
    for (const event of refused) {
      expect(event).toMatchObject({
        event: 'app_error',
        level: 'error',
        cause: { message: expect.stringMatching(/./) },
      });
      expect(JSON.stringify(event)).not.toMatch(/insert into|@example\.com/i);
    }
  });
});

test('the service starts while PostgreSQL is unavailable, and becomes ready when it is available', async () => {
  const proxy = await forThisTest(startProxy, inject('postgres'));
  await proxy.refuse();
  const service = await forThisTest(startService, addressOf(proxy), undefined, { waitsUntilReady: false });
  const ask = (path: string) => service.call('GET', path);

  expect(await ask('/health')).toEqual(probe('healthy'));
  expect(await ask('/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
  expect(await ask(USERS)).toEqual(refusal('service_unavailable_error', USERS));

  await proxy.pass();
  const statuses = new Set<number>();
  await until('/ready is 200', async () => {
    statuses.add((await ask(USERS)).status);
    return (await ask('/ready')).status === 200;
  });
  // The service is also not ready between PostgreSQL and its tables.
  expect([200, 503]).toEqual(expect.arrayContaining([...statuses]));
  expect(await ask('/ready')).toEqual(probe('ready'));
  expect(await ask(USERS)).toMatchObject({ status: 200, body: [] });
});
