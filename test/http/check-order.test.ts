import { beforeAll, describe, expect, test } from 'vitest';
import { ACCEPT_PATCH, forbidden, readResponse, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = `${USERS}11111111-1111-1111-1111-111111111111`;
const NO_UUID = `${USERS}42`;
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

type Sent = readonly [method: string, path: string, bearer?: string, headers?: Headers, body?: string];

/** Requests for which two checks fail, and the response of the first one. */
const BOTH_FAIL: readonly (readonly [title: string, expected: object, sent: () => Sent])[] = [
  [
    'a path that cannot be decoded (400), method (405)',
    refusal('bad_request_error', `${USERS}%zz`),
    () => ['PUT', `${USERS}%zz`],
  ],
  ['path (404), method (405)', refusal('not_found_error', '/nothing'), () => ['PUT', '/nothing']],
  ['path (404), token (401)', refusal('not_found_error', '/nothing'), () => ['GET', '/nothing']],
  [
    'method (405), token (401)',
    refusal('method_not_allowed_error', USERS, { headers: { allow: 'POST, GET, HEAD, OPTIONS' } }),
    () => ['PUT', USERS, 'no.such.token', PLAIN, TOO_LARGE],
  ],
  [
    'token (401), role (403)',
    refusal('unauthorized_error', USERS),
    () => ['POST', USERS, foreign, PLAIN, TOO_LARGE],
  ],
  [
    'role (403), media type (415)',
    forbidden('users.write', USERS),
    () => ['POST', USERS, reader, PLAIN, '{'],
  ],
  [
    'role (403), size (413)',
    forbidden('users.write', USERS),
    () => ['POST', USERS, reader, JSON_BODY, TOO_LARGE],
  ],
  ['role (403), path value (422)', forbidden('users.write', NO_UUID), () => ['DELETE', NO_UUID, reader]],
  [
    'media type (415), size (413)',
    refusal('unsupported_media_type_error', USERS),
    () => ['POST', USERS, token, PLAIN, TOO_LARGE],
  ],
  [
    'media type (415), path value (422)',
    refusal('unsupported_media_type_error', NO_UUID, { headers: ACCEPT_PATCH }),
    () => ['PATCH', NO_UUID, token, PLAIN, '{}'],
  ],
  [
    'size (413), body values (422)',
    refusal('payload_too_large_error', USERS),
    () => ['POST', USERS, token, JSON_BODY, TOO_LARGE],
  ],
  [
    'path value and body values together (422)',
    refusal('validation_error', NO_UUID, { errors: ['user_id', '#/email'] }),
    () => ['PATCH', NO_UUID, token, STALE, '{"email":"none"}'],
  ],
  [
    'body values (422), existence (404)',
    refusal('validation_error', UNKNOWN, { errors: ['#/is_active'] }),
    () => ['PATCH', UNKNOWN, token, STALE, '{"is_active":"yes"}'],
  ],
  [
    'existence (404), precondition (412)',
    refusal('not_found_error', UNKNOWN),
    () => ['DELETE', UNKNOWN, token, STALE],
  ],
];

describe('the order of the checks is', () => {
  test.each(BOTH_FAIL)('%s', async (_title, expected, sent) => {
    expect(await send(...sent())).toEqual(expected);
  });

  test('existence (404), precondition (412), conflict (409)', async () => {
    const [{ email }, { id }] = await Promise.all([createUser(), createUser()]);
    const patch = (path: string, headers: Headers) =>
      send('PATCH', path, token, headers, JSON.stringify({ email }));

    expect(await patch(UNKNOWN, STALE)).toEqual(refusal('not_found_error', UNKNOWN));
    expect(await patch(UNKNOWN, JSON_BODY)).toEqual(refusal('not_found_error', UNKNOWN));
    expect(await patch(USERS + id, STALE)).toEqual(refusal('precondition_failed_error', USERS + id));
  });
});

describe('without a valid token, a request', () => {
  test.each([
    ['POST', USERS, TOO_LARGE],
    ['GET', UNKNOWN, undefined],
    ['PATCH', `${USERS}42`, '[]'],
    ['DELETE', UNKNOWN, undefined],
  ])('is 401: %s %s', async (method, path, body) => {
    for (const bearer of ['', 'no.such.token', foreign]) {
      expect(await send(method, path, bearer, STALE, body)).toEqual(refusal('unauthorized_error', path));
    }
  });
});

describe('with SVC_REQUIRE_IF_MATCH', () => {
  const strict = serviceUnderTest(() => ({ SVC_REQUIRE_IF_MATCH: 'yes' }));
  const call = (method: string, path: string, init: RequestInit = {}) =>
    strict.call(method, path, undefined, init);

  test.each(['PATCH', 'DELETE'])('%s without If-Match is 428, before its body is checked', async (method) => {
    const body = method === 'PATCH' ? { body: TOO_LARGE } : {};

    expect(await call(method, NO_UUID, { ...body, headers: { 'if-none-match': '"1"' } })).toEqual(
      refusal('precondition_required_error', NO_UUID),
    );
  });

  test('a token without the role is 403 first', async () => {
    const authorization = `Bearer ${await strict.issuer.tokenFor('users.read')}`;

    expect(await call('DELETE', NO_UUID, { headers: { authorization } })).toEqual(
      forbidden('users.write', NO_UUID),
    );
  });

  test('an empty If-Match is not satisfied, and a read needs none', async () => {
    const path = USERS + (await strict.createUser()).id;

    expect((await call('DELETE', path, { headers: { 'if-match': '' } })).status).toBe(412);
    expect((await call('GET', path)).status).toBe(200);
  });
});
