import { beforeAll, expect, test } from 'vitest';
import { isDistributed } from '../stage/distributed.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { holdUser, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { isPooled } from '../stage/pooled.ts';
import { freshAddress, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const service = serviceUnderTest(() => PATIENT);
const { call, createUser } = service;
const post = postingUnderKeys(call);

/** Four concurrent requests of each kind, also under keys. Resolves with the statuses of each kind. */
async function sendOthers(): Promise<readonly number[]> {
  const users = await times(4, () => createUser());
  const responses = await Promise.all([
    ...users.map(({ id }) => call('GET', USERS + id)),
    ...users.map(() => call('GET', `${USERS}?limit=1`)),
    ...users.map(() => call('GET', `${USERS}changes?limit=1`)),
    ...users.map(({ id }) => call('PATCH', USERS + id, { full_name: 'changed' })),
    ...users.map(() => post(USERS, freshKey(), { email: freshAddress() })),
    ...users.map(() => call('POST', `${USERS}batch`, { items: [{ email: freshAddress() }] })),
  ]);
  return responses.map(({ status }) => status);
}

// So that no test waits for connections to be opened.
beforeAll(async () => void (await sendOthers()));

const ALL_SUCCEED = [200, 200, 200, 200, 201, 201].flatMap((status) => Array(4).fill(status));

test('updates that wait for the lock of their user do not delay other requests, and follow when they have it', async () => {
  const { id } = await createUser();
  const { release } = await holdUser(service.database, id);
  const ended: number[] = [];
  const waiting = times(4, async () => {
    const { status } = await call('PATCH', USERS + id, { full_name: 'waited' });
    ended.push(status);
  });
  // With pipelined connections two of them wait in PostgreSQL, and the others wait for these two.
  await untilUnderWay(isPooled || isDistributed ? 4 : 2, service.database);

  expect(await sendOthers()).toEqual(ALL_SUCCEED);
  expect(ended).toEqual([]);
  await release();
  await waiting;
  expect(ended).toEqual([200, 200, 200, 200]);
});
