import { expect, test } from 'vitest';
import { freshAddress, refusal, success, TIMESTAMP, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser } = service;

const all = { email: freshAddress(), full_name: 'All', is_active: false };

test.each<readonly [string, object, Partial<UserBody>]>([
  ['email', { email: 'Other@Example.com' }, { email: 'Other@Example.com' }],
  ['full_name', { full_name: 'Countess' }, { full_name: 'Countess' }],
  ['is_active false', { is_active: false }, { is_active: false }],
  ['is_active true', { is_active: true }, {}],
  ['all of them', all, all],
  ['none of them', {}, {}],
  ['null, which clears full_name', { full_name: null }, { full_name: null }],
  ['null, which does not change email', { email: null }, {}],
  ['null, which does not change is_active', { is_active: null }, {}],
  [
    'null, which clears only full_name',
    { email: null, full_name: null, is_active: null },
    { full_name: null },
  ],
])('an update writes exactly the given fields: %s', async (_case, changes, changed) => {
  const given = await createUser({ full_name: 'Ada Lovelace' });

  const response = await call('PATCH', USERS + given.id, changes);

  const updated_at = expect.stringMatching(TIMESTAMP);
  expect(response).toEqual(success(200, { ...given, ...changed, updated_at }, { etag: '"2"' }));
  expect((response.body as UserBody).updated_at > given.updated_at).toBe(true);
  expect((await call('GET', USERS + given.id)).body).toEqual(response.body);
});

test('an inactive user can be activated again', async () => {
  const { id } = await createUser({ full_name: 'Ada Lovelace' });
  const states = [];
  for (const is_active of [false, true, false]) {
    states.push(((await call('PATCH', USERS + id, { is_active })).body as UserBody).is_active);
  }

  expect(states).toEqual([false, true, false]);
});

test('updated_at moves forward also if the clock is behind it', async () => {
  const { id } = await createUser({ full_name: 'Ada Lovelace' });
  await service.database.query(`UPDATE users SET updated_at = '2999-01-01T00:00:00Z' WHERE id = '${id}'`);

  const { updated_at } = (await call('PATCH', USERS + id, {})).body as UserBody;

  expect(updated_at).toBe('2999-01-01T00:00:00.001Z');
});

test('a refused PATCH changes nothing', async () => {
  const given = await createUser({ full_name: 'Ada Lovelace' });
  const taken = await createUser({ full_name: 'Ada Lovelace' });
  const path = USERS + given.id;

  expect(await call('PATCH', path, { email: taken.email, full_name: 'x' })).toEqual(
    refusal('conflict_error', path),
  );
  expect(await call('PATCH', path, { full_name: 'x', is_active: 'no' })).toEqual(
    refusal('validation_error', path, { errors: ['#/is_active'] }),
  );
  expect(await call('GET', path)).toEqual(success(200, given, { etag: '"1"' }));
});
