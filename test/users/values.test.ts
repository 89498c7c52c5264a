import { describe, expect, test } from 'vitest';
import { freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const { call } = serviceUnderTest();

/** Sends a text as it is, because a literal cannot have repeated members. */
const post = (body: string) =>
  call('POST', USERS, undefined, { body, headers: { 'content-type': 'application/json' } });

describe('unknown members are ignored', () => {
  test.each([
    ...['"is_active": false', '"is_active": "whatever"', '"id": "11111111-1111-1111-1111-111111111111"'],
    ...['"created_at": "1970-01-01T00:00:00.000Z", "updated_at": null', '"version": 7'],
    ...['"password": "secret"', '"__proto__": {"is_active": false, "full_name": "Eve"}'],
    '"constructor": {"prototype": {"full_name": "Eve"}}',
    ...['"prototype": {}, "toString": 1, "hasOwnProperty": 1', '"": 1'],
    ...['"Full_Name": "Eve", "fullName": "Eve"', '"deep": {"a": [{"b": [null, 1e400, -0]}]}'],
    '"\\u0000": "\\u0000", "\\ud800": "\\ud800"',
  ])('on create: %s', async (members) => {
    const email = freshAddress();

    const response = await post(`{"email": "${email}", ${members}}`);
    const { id, created_at } = response.body as UserBody;

    const expected = user({ email, updated_at: created_at });
    expect(response).toEqual(success(201, expected, { location: USERS + id, etag: '"1"' }));
    expect(id).not.toMatch(/^1{8}/);
    expect({}).not.toHaveProperty('full_name');
  });

  test('on update', async () => {
    const { body } = await call('POST', USERS, { email: freshAddress() });
    const given = body as UserBody;
    const unknown = { id: USERS, created_at: null, updated_at: 'now', version: 9, role: 'admin' };

    const response = await call('PATCH', USERS + given.id, { ...unknown, full_name: 'Ada' });

    const updated_at = expect.not.stringMatching(given.updated_at);
    expect(response).toEqual(success(200, { ...given, full_name: 'Ada', updated_at }, { etag: '"2"' }));
  });
});

test('the last value of a repeated member counts', async () => {
  const email = freshAddress();

  const response = await post(`{"email": "none", "email": "${email}"}`);

  expect(response).toMatchObject({ status: 201, body: { email } });
});

test('422 names all faults of a body', async () => {
  const { body } = await call('POST', USERS, { email: freshAddress() });
  const path = USERS + (body as UserBody).id;

  expect(await call('POST', USERS, { email: 1, full_name: 2 })).toEqual(
    refusal('validation_error', USERS, { errors: ['#/email', '#/full_name'] }),
  );
  expect(await call('PATCH', path, { email: 1, full_name: 2, is_active: 3 })).toEqual(
    refusal('validation_error', path, { errors: ['#/email', '#/full_name', '#/is_active'] }),
  );
});
