import { expect, test } from 'vitest';
import { PATIENT } from '../stage/locks.ts';
import { freshAddress, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times, until } from '../stage/until.ts';

// On a loaded machine, a statement may wait for a session for longer than the default limits.
const service = serviceUnderTest(() => PATIENT);
const { call, createUser } = service;

/**
 * One begins in each pass of the event loop. The others are refused, before they are logged, if the process stands still
 * for 850 ms in this pass.
 */
async function createBatch() {
  const items = [{ email: freshAddress() }, { email: freshAddress() }];
  const response = await call('POST', `${USERS}batch`, { items });
  return (response.status !== 503 || (await service.eventsOf(response)).length > 0) && response;
}

/** The statuses of twenty concurrent requests per operation, so that every connection prepares each statement. */
async function statusesOfAll(): Promise<readonly number[]> {
  const responses = await times(20, async () => {
    const { id, email } = await createUser();
    return [
      await call('GET', USERS + id),
      await call('GET', `${USERS}?email=${encodeURIComponent(email)}`),
      await call('GET', `${USERS}?limit=5`),
      await call('GET', `${USERS}changes?limit=5`),
      await call('PATCH', USERS + id, { full_name: 'changed' }),
      await until('it is not 503', createBatch),
      await call('POST', USERS, { email: freshAddress() }, { headers: { 'Idempotency-Key': id } }),
      await call('DELETE', USERS + id),
    ];
  });
  return responses.flat().map(({ status }) => status);
}

test.each([
  ['adds a column', 'ALTER TABLE users ADD COLUMN note text DEFAULT NULL'],
  [
    'changes the type of columns',
    'ALTER TABLE users ALTER full_name TYPE varchar(255), ALTER version TYPE int',
  ],
  ['changes it back', 'ALTER TABLE users ALTER full_name TYPE text, ALTER version TYPE bigint'],
  ['drops a column', 'ALTER TABLE users DROP COLUMN note'],
  ['changes the columns of changes', 'ALTER TABLE user_changes ALTER actor TYPE varchar(2000)'],
])('no request fails when a migration %s while statements are prepared', async (_title, change) => {
  const before = await statusesOfAll();
  await service.database.query(change);

  expect(before).toEqual(Array(20).fill([200, 200, 200, 200, 200, 201, 201, 204]).flat());
  expect(await statusesOfAll()).toEqual(before);
});
