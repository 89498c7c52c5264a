import { describe, expect, test } from 'vitest';
import { updatedFields } from '../../lib/users/fields.ts';
import { change, endOfFeed, nextOf } from '../stage/changes.ts';
import { freshAddress, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

const { call, createUser } = service;

describe('the feed of changes', () => {
  test('has every create, update and delete, in their order', async () => {
    const end = await endOfFeed(call);
    const ada = await createUser();
    await call('PATCH', USERS + ada.id, { full_name: 'Ada' });
    await call('PATCH', USERS + ada.id, { full_name: 'Ada' });
    await call('PATCH', USERS + ada.id, {
      email: ada.email.toUpperCase(),
      is_active: false,
      full_name: null,
    });
    await call('DELETE', USERS + ada.id);

    const expected = [
      change('user.created', ada, 1),
      change('user.updated', ada, 2, ['full_name']),
      change('user.updated', ada, 3),
      change('user.updated', ada, 4, ['email', 'full_name', 'is_active']),
      change('user.deleted', ada, 5),
    ];
    const page = await call('GET', end);
    expect(page.status).toBe(200);
    expect(page.body).toEqual(expected);
    expect(page.headers['content-type']).toBe('application/json; charset=utf-8');
    expect((await call('GET', nextOf(page))).body).toEqual([]);
    expect((await call('GET', `${USERS}${ada.id.toUpperCase()}/changes`)).body).toEqual(expected);
  });

  test('has those of a batch in the order of its items', async () => {
    const end = await endOfFeed(call);
    const items = ['z', 'b', 'a'].map((name) => ({ email: `${name}.${freshAddress()}` }));
    const users = (await call('POST', `${USERS}batch`, { items })).body as UserBody[];

    expect((await call('GET', end)).body).toEqual(users.map((user) => change('user.created', user, 1)));
  });

  test('of an unknown user is 404', async () => {
    const path = `${USERS}11111111-1111-1111-1111-111111111111/changes`;
    expect(await call('GET', path)).toEqual(refusal('not_found_error', path));
  });
});

test('`changed` leaves out a field that this version does not know', async () => {
  const end = await endOfFeed(call);
  const ada = await createUser();
  const { database } = service;
  await database.query('UPDATE user_changes_unnumbered SET type = 2, changed = 8192 | 2');
  const { body } = await call('GET', end);
  const known = updatedFields.reduce((bits, { changeBit }) => bits | changeBit, 0);
  await database.query(`UPDATE user_changes SET changed = ${~known}`);

  expect(body).toEqual([change('user.updated', ada, 1, ['full_name'])]);
  expect((await call('GET', end)).body).toEqual([change('user.updated', ada, 1)]);
});
