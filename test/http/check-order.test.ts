import { beforeAll, describe, expect, test } from 'vitest';
import { ACCEPT_PATCH, forbidden, readResponse, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = `${USERS}11111111-1111-1111-1111-111111111111`;
const TOO_LARGE = 'x'.repeat(65_537);
const PLAIN = { 'content-type': 'text/plain' };
const JSON_BODY = { 'content-type': 'application/json' };
const STALE = { ...JSON_BODY, 'if-match': '"4711"' };

const service = serviceUnderTest();
const { createUser } = service;
let token: string;
let reader: string;
let foreign: string;

beforeAll(async () => {
  const { sign } = service.issuer;
  [token, reader, foreign] = await Promise.all([
    sign(),
    sign({ roles: ['users.read'] }),
    sign({ iss: 'https://elsewhere.example', roles: [] }),
  ]);
});

type Headers = Record<string, string>;

async function send(method: string, path: string, bearer = '', headers: Headers = {}, body?: string) {
  const authorization: Headers = bearer ? { authorization: `Bearer ${bearer}` } : {};
  const init = { method, headers: { ...authorization, ...headers }, ...(body !== undefined && { body }) };
  return readResponse(await fetch(`${service.url}${path}`, init));
}

describe('the order of the checks is', () => {
  test('a path that cannot be decoded (400), method (405)', async () => {
    expect(await send('PUT', `${USERS}%zz`)).toEqual(refusal('bad_request_error', `${USERS}%zz`));
  });

  test('path (404), method (405)', async () => {
    expect(await send('PUT', '/api/v1/nothing')).toEqual(refusal('not_found_error', '/api/v1/nothing'));
  });

  test('path (404), token (401)', async () => {
    expect(await send('GET', '/api/v1/nothing')).toEqual(refusal('not_found_error', '/api/v1/nothing'));
  });

  test('method (405), token (401)', async () => {
    expect(await send('PUT', USERS, 'no.such.token', PLAIN, TOO_LARGE)).toEqual(
      refusal('method_not_allowed_error', USERS, { headers: { allow: 'POST, GET, HEAD, OPTIONS' } }),
    );
  });

  test('token (401), role (403)', async () => {
    expect(await send('POST', USERS, foreign, PLAIN, TOO_LARGE)).toEqual(
      refusal('unauthorized_error', USERS),
    );
  });

  test('role (403), media type (415)', async () => {
    expect(await send('POST', USERS, reader, PLAIN, '{')).toEqual(forbidden('users.write', USERS));
  });

  test('role (403), size (413)', async () => {
    expect(await send('POST', USERS, reader, JSON_BODY, TOO_LARGE)).toEqual(forbidden('users.write', USERS));
  });

  test('role (403), path value (422)', async () => {
    const path = `${USERS}42`;

    expect(await send('DELETE', path, reader)).toEqual(forbidden('users.write', path));
  });

  test('media type (415), size (413)', async () => {
    expect(await send('POST', USERS, token, PLAIN, TOO_LARGE)).toEqual(
      refusal('unsupported_media_type_error', USERS),
    );
  });

  test('media type (415), path value (422)', async () => {
    const path = `${USERS}42`;

    expect(await send('PATCH', path, token, PLAIN, '{}')).toEqual(
      refusal('unsupported_media_type_error', path, { headers: ACCEPT_PATCH }),
    );
  });

  test('size (413), body values (422)', async () => {
    expect(await send('POST', USERS, token, JSON_BODY, TOO_LARGE)).toEqual(
      refusal('payload_too_large_error', USERS),
    );
  });

  test('path value and body values together (422)', async () => {
    const path = `${USERS}42`;
    const body = '{"email":"none","full_name":1,"is_active":"yes"}';

    expect(await send('PATCH', path, token, STALE, body)).toEqual(
      refusal('validation_error', path, { errors: ['user_id', '#/email', '#/full_name', '#/is_active'] }),
    );
  });

  test('body values (422), existence (404)', async () => {
    expect(await send('PATCH', UNKNOWN, token, STALE, '{"is_active":"yes"}')).toEqual(
      refusal('validation_error', UNKNOWN, { errors: ['#/is_active'] }),
    );
  });

  test('existence (404), precondition (412)', async () => {
    expect(await send('PATCH', UNKNOWN, token, STALE, '{}')).toEqual(refusal('not_found_error', UNKNOWN));
    expect(await send('DELETE', UNKNOWN, token, STALE)).toEqual(refusal('not_found_error', UNKNOWN));
  });

  test('existence (404), conflict (409)', async () => {
    const { email } = await createUser();

    expect(await send('PATCH', UNKNOWN, token, JSON_BODY, JSON.stringify({ email }))).toEqual(
      refusal('not_found_error', UNKNOWN),
    );
  });

  test('precondition (412), conflict (409)', async () => {
    const { email } = await createUser();
    const { id } = await createUser();

    expect(await send('PATCH', USERS + id, token, STALE, JSON.stringify({ email }))).toEqual(
      refusal('precondition_failed_error', USERS + id),
    );
  });
});

describe('without a valid token, a request', () => {
  test.each([
    ['POST', USERS, '{"email":'],
    ['POST', USERS, TOO_LARGE],
    ['GET', USERS, undefined],
    ['GET', UNKNOWN, undefined],
    ['PATCH', `${USERS}42`, '[]'],
    ['PATCH', UNKNOWN, '{}'],
    ['DELETE', UNKNOWN, undefined],
  ])('is 401: %s %s', async (method, path, body) => {
    for (const bearer of ['', 'no.such.token', foreign]) {
      expect(await send(method, path, bearer, STALE, body)).toEqual(refusal('unauthorized_error', path));
    }
  });

  test('is 401 for an existing user', async () => {
    const { id } = await createUser();

    expect(await send('GET', USERS + id, foreign)).toEqual(refusal('unauthorized_error', USERS + id));
    expect(await send('DELETE', USERS + id, foreign)).toEqual(refusal('unauthorized_error', USERS + id));
  });
});
