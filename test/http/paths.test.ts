import { beforeAll, describe, expect, test } from 'vitest';
import { lastResponse, requestText } from '../stage/connection.ts';
import {
  freshAddress,
  options,
  probe,
  readResponse,
  refusal,
  success,
  type UserBody,
} from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const COLLECTION = 'POST, GET, HEAD, OPTIONS';
const RESOURCE = 'GET, HEAD, PATCH, DELETE, OPTIONS';
const BATCH = 'POST, OPTIONS';
const PROBE = 'GET, HEAD, OPTIONS';

let ada: UserBody;

const service = serviceUnderTest();
const { call, createUser } = service;

beforeAll(async () => {
  ada = await createUser();
});

/** A request with exactly this target, which fetch would normalize. */
function get(target: string, method = 'GET') {
  const fields = { Authorization: service.authorization, Connection: 'close' };
  return lastResponse(service.url, requestText(`${method} ${target}`, fields));
}

describe('one resource', () => {
  test('is /api/v1/users with and without a trailing slash', async () => {
    const created = await call('POST', '/api/v1/users', { email: freshAddress() });

    expect(created.status).toBe(201);
    expect(await call('GET', '/api/v1/users')).toEqual(success(200, [ada, created.body]));
    expect(await call('GET', '/api/v1/users/')).toEqual(success(200, [ada, created.body]));
  });

  test('is /api/v1/users/{user_id} with and without a trailing slash', async () => {
    const path = `/api/v1/users/${ada.id}`;

    expect(await call('GET', `${path}/`)).toEqual(success(200, ada, { etag: '"1"' }));
    expect((await call('PATCH', `${path}/`, {})).status).toBe(200);
    expect((await call('DELETE', '/api/v1/users/00000000-0000-0000-0000-000000000000/')).status).toBe(404);
  });

  test('is found by a path with encoded letters', async () => {
    const encoded = `/api/v1/%75sers/${ada.id.replace(/^./, (digit) => `%${digit.charCodeAt(0).toString(16)}`)}`;

    expect(await get(encoded)).toMatchObject({ status: 200, body: { id: ada.id } });
  });

  test('is found by the absolute form of the target', async () => {
    expect(await get(`http://localhost/api/v1/users/${ada.id}?a=b`)).toMatchObject({
      status: 200,
      body: { id: ada.id },
    });
    expect(await get('http://localhost/health')).toEqual(probe('healthy'));
    expect(await get('http://localhost')).toEqual(refusal('not_found_error', '/'));
    expect(await get('http://localhost?a=b')).toEqual(refusal('not_found_error', '/'));
  });
});

describe('an unknown path is 404', () => {
  test.each([
    ...['/', '/api/v2/users/', '/api/v1/users//', '/api/v1/users;limit=1', '//api/v1/users/'],
    ...['/api/v1/users/../users/', '/api/v1/Users/', '/api%2Fv1/users/', '/health/live'],
    ...['/__proto__', '/api/v1/constructor/', '/%00', `/${'a/'.repeat(2000)}`],
  ])('%s', async (path) => {
    expect(await get(path)).toEqual(refusal('not_found_error', path));
  });

  test('with a query, which `instance` does not contain', async () => {
    expect(await get('/nowhere?token=secret&x=%zz')).toEqual(refusal('not_found_error', '/nowhere'));
  });
});

test.each([
  ...['/api/v1/users/%', '/api/v1/users/%zz', '/api/v1/users/%C0%AF', '/%zz', '/api/v1/users/%25%ff'],
])('a path that is not valid percent-encoded UTF-8 is 400: %s', async (path) => {
  for (const method of ['GET', 'OPTIONS', 'DELETE'])
    expect(await get(path, method)).toEqual(refusal('bad_request_error', path));
});

test.each(['%25', '%25ff', '%2F'])('an encoded percent sign is an ordinary value: %s', async (id) => {
  const instance = `/api/v1/users/${id}`;

  expect(await get(instance)).toEqual(refusal('validation_error', instance, { errors: ['user_id'] }));
});

describe('OPTIONS on a known path is 204 with Allow, and with Accept-Patch if PATCH is supported', () => {
  test.each([
    ['/api/v1/users/', COLLECTION],
    ['/api/v1/users/b%61tch/', BATCH],
    ['/api/v1/users/Batch', RESOURCE],
    ['/health', PROBE],
  ])('%s: %s', async (path, allow) => {
    expect(await get(path, 'OPTIONS')).toEqual(options(allow));
  });
});

describe('any other method on a known path is 405 with Allow', () => {
  test.each([
    ['PUT', '/api/v1/users/42/', RESOURCE],
    ['GET', '/api/v1/users/b%61tch/', BATCH],
    ['DELETE', '/api/v1/users/batch/', BATCH],
    ['TRACE', '/api/v1/users/', COLLECTION],
  ])('%s %s', async (method, path, allow) => {
    const expected = refusal('method_not_allowed_error', path, { headers: { allow } });

    expect(await get(path, method)).toEqual(expected);
  });

  test('before the token, and to HEAD without content', async () => {
    const path = '/api/v1/users/batch';
    const { headers, ...expected } = refusal('method_not_allowed_error', path, { headers: { allow: BATCH } });

    expect(await readResponse(await fetch(service.url + path))).toEqual({ headers, ...expected });
    expect(await get(path, 'HEAD')).toEqual({
      status: 405,
      headers: { ...headers, 'content-length': expect.stringMatching(/^\d+$/) },
      body: '',
    });
  });
});
