import { expect, test } from 'vitest';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { holdEmail, untilUnderWay } from '../stage/locks.ts';
import { freshAddress, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

// The waiting creates wait until the test releases the lock.
const service = serviceUnderTest(() => ({
  SVC_POSTGRES_POOL_TIMEOUT: '30',
  SVC_POSTGRES_STATEMENT_TIMEOUT: '30',
}));
const { call, createUser } = service;
const post = postingUnderKeys(call);

const times = <Value>(count: number, make: () => Promise<Value>) =>
  Promise.all(Array.from({ length: count }, make));

test('200 waiting creates under a key do not delay requests without a key', async () => {
  const { id } = await createUser();
  const email = freshAddress();
  const { release } = await holdEmail(service.database, email);
  const waiting = times(200, () => post(USERS, freshKey(), { email }));
  // Writes leave one of the six connections to reads.
  await untilUnderWay(5, service.database, 10, 50);

  const others = await times(10, async () => [
    (await call('GET', USERS + id)).status,
    (await call('GET', `${USERS}?limit=1`)).status,
    (await call('PATCH', USERS + id, { full_name: 'Ada' })).status,
    (await call('POST', USERS, { email: freshAddress() })).status,
  ]);
  await release();
  await waiting;
  expect(others).toEqual(others.map(() => [200, 200, 200, 201]));
});
