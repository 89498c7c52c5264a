import { beforeAll, describe, expect, test } from 'vitest';
import { freshAddress, invalid, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const { call, createUser } = serviceUnderTest();

/** The path of a user. */
let path: string;

beforeAll(async () => {
  path = USERS + (await createUser()).id;
});

/** Sends a text as it is, because a literal cannot have repeated members. */
const post = (body: string) =>
  call('POST', USERS, undefined, { body, headers: { 'content-type': 'application/json' } });

describe('unknown members are ignored', () => {
  test.each([
    ...['"is_active": "whatever"', '"id": "11111111-1111-1111-1111-111111111111"'],
    ...['"created_at": "1970-01-01T00:00:00.000Z", "updated_at": null', '"Full_Name": "Eve"'],
    '"__proto__": {"is_active": false, "full_name": "Eve"}',
    ...['"deep": {"a": [{"b": [null, 1e400, -0]}]}', '"\\u0000": "\\u0000", "\\ud800": "\\ud800"'],
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
    const given = await createUser();
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
  const faulty = { email: 1, full_name: 2, is_active: 3 };

  expect(await call('POST', USERS, faulty)).toEqual(invalid(USERS, '#/email', '#/full_name'));
  expect(await call('PATCH', path, faulty)).toEqual(invalid(path, '#/email', '#/full_name', '#/is_active'));
});

test.each([
  ['an empty text', ''],
  ['spaces around it', '  Ada  '],
  ['lines', 'Ada\r\nLovelace\n'],
  ['control characters', '\u0001\u001b[31m\u007f\u0085\u009f'],
  ['no-break and zero-width characters', '\u00a0\u200b\u200d\ufeff'],
  ['letters composed and decomposed', 'Zoë Zoe\u0308'],
  ['all scripts', 'Юлия 用户 محمد नमस्ते ไทย 👩‍👩‍👧‍👦 𝔄𝔡𝔞'],
  ['255 characters', 'x'.repeat(255)],
  ['255 characters beyond the BMP', '🌍'.repeat(255)],
])('a full_name is stored and returned as given: %s', async (_case, full_name) => {
  const created = await call('POST', USERS, { email: freshAddress(), full_name });
  const changed = await call('PATCH', path, { full_name });
  const read = await call('GET', USERS + (created.body as UserBody).id);

  const names = [created, changed, read].map(({ body }) => (body as UserBody).full_name);
  expect(names).toEqual([full_name, full_name, full_name]);
});

test.each([
  ['of 256 characters', 'x'.repeat(256)],
  ['of 256 characters beyond the BMP', '🌍'.repeat(256)],
  ['with U+0000', 'Ada\0Lovelace'],
  ['with a lone high surrogate', 'Ada \ud83c'],
  ['with a lone low surrogate', '\udf0d Ada'],
  ['that is a number', 42],
])('a full_name is 422 %s', async (_case, full_name) => {
  const body = { email: freshAddress(), full_name };

  expect(await call('POST', USERS, body)).toEqual(invalid(USERS, '#/full_name'));
  expect(await call('PATCH', path, { full_name })).toEqual(invalid(path, '#/full_name'));
});
