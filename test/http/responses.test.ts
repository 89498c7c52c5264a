import { describe, expect, test } from 'vitest';
import {
  forbidden,
  freshAddress,
  options,
  probe,
  readResponse,
  refusal,
  success,
  TIMESTAMP,
  USERS,
  type UserBody,
  user,
} from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = '11111111-1111-1111-1111-111111111111';

const service = serviceUnderTest();
const { call, createUser } = service;

const callAs = async (role: string, method: string, path: string, body?: unknown) => {
  const headers = { authorization: `Bearer ${await service.issuer.tokenFor(role)}` };
  return call(method, path, body, { headers });
};

describe('users', () => {
  test('a create is 201 with the user, Location and ETag', async () => {
    const email = freshAddress();

    const response = await call('POST', USERS, { email });
    const { id, created_at } = response.body as UserBody;

    const created = user({ email, updated_at: created_at });
    expect(response).toEqual(success(201, created, { location: USERS + id, etag: '"1"' }));
  });

  test('a read returns the user that the create returned', async () => {
    const given = await createUser({ full_name: 'Ada Lovelace' });

    expect(await call('GET', USERS + given.id)).toEqual(success(200, given, { etag: '"1"' }));
  });

  test('an update is 200 with the updated user and a new ETag', async () => {
    const given = await createUser();

    const response = await call('PATCH', USERS + given.id, { full_name: 'Ada', is_active: false });

    const updated_at = expect.stringMatching(TIMESTAMP);
    const updated = { ...given, full_name: 'Ada', is_active: false, updated_at };
    expect(response).toEqual(success(200, updated, { etag: '"2"' }));
    expect(await call('GET', USERS + given.id)).toEqual(success(200, response.body, { etag: '"2"' }));
  });

  test('a delete is 204 without content, and the user is then 404', async () => {
    const { id } = await createUser();

    expect(await call('DELETE', USERS + id)).toEqual(success(204, ''));
    expect(await call('DELETE', USERS + id)).toEqual(refusal('not_found_error', USERS + id));
  });

  test('times are UTC with milliseconds, and equal those of the create', async () => {
    const before = Date.now();
    const { created_at, updated_at } = await createUser();

    expect(created_at).toMatch(TIMESTAMP);
    expect(updated_at).toBe(created_at);
    // PostgreSQL may run on another machine with another clock.
    expect(Math.abs(Date.parse(created_at) - before)).toBeLessThan(60_000);
  });
});

test('the columns have the same precision as the responses', async () => {
  const { id } = await createUser();
  const changed = (await call('PATCH', USERS + id, {})).body as UserBody;
  const [row] = await inDatabase(
    service.database,
    `SELECT created_at = '${changed.created_at}' AS created, updated_at = '${changed.updated_at}' AS updated
     FROM users WHERE id = '${id}'`,
  );

  expect(row).toEqual({ created: true, updated: true });
});

describe('an id', () => {
  const METHODS = [['GET'], ['PATCH', {}], ['DELETE']] as const;

  test('is valid in either case', async () => {
    const given = await createUser();

    expect((await call('GET', USERS + given.id.toUpperCase())).body).toEqual(given);
  });

  test.each([UNKNOWN, 'ffffffff-ffff-ffff-ffff-ffffffffffff', '00000000-0000-0000-0000-000000000000'])(
    'of any UUID version is valid, and 404 if no user has it: %s',
    async (id) => {
      for (const [method, body] of METHODS)
        expect(await call(method, USERS + id, body)).toEqual(refusal('not_found_error', USERS + id));
    },
  );

  test.each([
    '42',
    `%7B${UNKNOWN}%7D`,
    UNKNOWN.replaceAll('-', ''),
    `${UNKNOWN}1`,
    UNKNOWN.slice(1),
    `g${UNKNOWN.slice(1)}`,
    `urn:uuid:${UNKNOWN}`,
    `%20${UNKNOWN}`,
    `${UNKNOWN}%0A`,
    `${UNKNOWN}%00`,
    '1111-11111111-1111-1111-111111111111',
    "1'%20OR%20'1'='1",
    '%F0%9F%8C%8D',
    'x'.repeat(4000),
  ])('in another form is 422: %s', async (id) => {
    const expected = refusal('validation_error', USERS + id, { errors: ['user_id'] });

    for (const [method, body] of METHODS) expect(await call(method, USERS + id, body)).toEqual(expected);
  });
});

describe('the roles', () => {
  test.each([
    ['users.read', 'POST', USERS],
    ['users.read', 'PATCH', USERS + UNKNOWN],
    ['users.read', 'DELETE', USERS + UNKNOWN],
    ['users.write', 'GET', USERS],
    ['users.write', 'GET', USERS + UNKNOWN],
  ])('%s is 403 on %s %s', async (role, method, path) => {
    const lacked = role === 'users.read' ? 'users.write' : 'users.read';

    expect(await callAs(role, method, path)).toEqual(forbidden(lacked, path));
  });

  test('api.superuser is accepted on every route', async () => {
    const created = await callAs('api.superuser', 'POST', USERS, { email: freshAddress() });
    const path = USERS + (created.body as UserBody).id;
    const responses = [
      created,
      await callAs('api.superuser', 'GET', USERS),
      await callAs('api.superuser', 'GET', path),
      await callAs('api.superuser', 'PATCH', path, {}),
      await callAs('api.superuser', 'DELETE', path),
    ];

    expect(responses.map(({ status }) => status)).toEqual([201, 200, 200, 200, 204]);
  });
});

describe('a request without a token', () => {
  const ask = async (method: string, path: string) =>
    readResponse(await fetch(`${service.url}${path}`, { method }));

  test('to a probe is accepted', async () => {
    expect(await ask('GET', '/health')).toEqual(probe('healthy'));
    expect(await ask('GET', '/ready')).toEqual(probe('ready'));
  });

  test('with OPTIONS is accepted', async () => {
    expect(await ask('OPTIONS', USERS)).toEqual(options('POST, GET, HEAD, OPTIONS'));
  });
});

test('a conflict reveals nothing about the user of another caller', async () => {
  const { id, email, full_name } = await createUser({
    email: 'Secret.Person@Example.com',
    full_name: 'S. P.',
  });

  const { body } = await call('POST', USERS, { email: 'secret.person@example.com' });

  const text = JSON.stringify(body);
  for (const secret of [id, email, full_name]) expect(text).not.toContain(secret);
});
