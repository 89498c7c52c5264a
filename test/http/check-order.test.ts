import { beforeAll, describe, expect, test } from 'vitest';
import { ACCEPT_PATCH, forbidden, type Refusal, readResponse, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = `${USERS}11111111-1111-1111-1111-111111111111`;
const NO_UUID = `${USERS}42`;
const LARGE = 'x'.repeat(65_537);
const PLAIN = { 'content-type': 'text/plain' };
const JSON_BODY = { 'content-type': 'application/json' };
const STALE = { ...JSON_BODY, 'if-match': '"4711"' };

const service = serviceUnderTest();
const { createUser } = service;
const INVALID = 'no.such.token';
/** Bearer tokens by name. */
let tokens: Record<string, string>;

beforeAll(async () => {
  const { sign } = service.issuer;
  tokens = {
    valid: await sign(),
    reader: await sign({ roles: ['users.read'] }),
    foreign: await sign({ iss: 'https://elsewhere.example', roles: [] }),
  };
});

type Sent = [method: string, path: string, token?: string, headers?: Record<string, string>, body?: string];

/** Sends a request with the token of this name, or with this text as its token. */
async function send(...[method, path, token, headers, body]: Sent) {
  const authorization = token ? { authorization: `Bearer ${tokens[token] ?? token}` } : {};
  const init = { method, headers: { ...authorization, ...headers }, ...(body !== undefined && { body }) };
  return readResponse(await fetch(`${service.url}${path}`, init as RequestInit));
}

const COLLECTION = { headers: { allow: 'POST, GET, HEAD, OPTIONS' } };
const PATCHABLE = { headers: ACCEPT_PATCH };
const BOTH_FAULTS = { errors: ['user_id', '#/email'] };

/** Requests for which two checks fail, and the refusal of the first one. */
const BOTH_FAIL: [title: string, code: Refusal, sent: Sent, particulars?: Parameters<typeof refusal>[2]][] = [
  ['a path that cannot be decoded (400), method (405)', 'bad_request_error', ['PUT', `${USERS}%zz`]],
  ['path (404), method (405)', 'not_found_error', ['PUT', '/nothing']],
  ['path (404), token (401)', 'not_found_error', ['GET', '/nothing']],
  [
    'method (405), token (401)',
    'method_not_allowed_error',
    ['PUT', USERS, INVALID, PLAIN, LARGE],
    COLLECTION,
  ],
  ['token (401), role (403)', 'unauthorized_error', ['POST', USERS, 'foreign', PLAIN, LARGE]],
  ['role (403), media type (415)', 'forbidden_error', ['POST', USERS, 'reader', PLAIN, '{']],
  ['role (403), size (413)', 'forbidden_error', ['POST', USERS, 'reader', JSON_BODY, LARGE]],
  ['role (403), path value (422)', 'forbidden_error', ['DELETE', NO_UUID, 'reader']],
  ['media type (415), size (413)', 'unsupported_media_type_error', ['POST', USERS, 'valid', PLAIN, LARGE]],
  [
    'media type (415), path value (422)',
    'unsupported_media_type_error',
    ['PATCH', NO_UUID, 'valid', PLAIN, '{}'],
    PATCHABLE,
  ],
  ['size (413), body values (422)', 'payload_too_large_error', ['POST', USERS, 'valid', JSON_BODY, LARGE]],
  [
    'path value and body values together (422)',
    'validation_error',
    ['PATCH', NO_UUID, 'valid', STALE, '{"email":"none"}'],
    BOTH_FAULTS,
  ],
  [
    'body values (422), existence (404)',
    'validation_error',
    ['PATCH', UNKNOWN, 'valid', STALE, '{"is_active":"yes"}'],
    { errors: ['#/is_active'] },
  ],
  ['existence (404), precondition (412)', 'not_found_error', ['DELETE', UNKNOWN, 'valid', STALE]],
];

describe('the order of the checks is', () => {
  test.each(BOTH_FAIL)('%s', async (_title, code, sent, particulars) => {
    const [, path] = sent;
    const isForbidden = code === 'forbidden_error';
    const expected = isForbidden ? forbidden('users.write', path) : refusal(code, path, particulars);

    expect(await send(...sent)).toEqual(expected);
  });

  test('existence (404), precondition (412), conflict (409)', async () => {
    const [{ email }, { id }] = await Promise.all([createUser(), createUser()]);
    const patch = (path: string, headers: Record<string, string>) =>
      send('PATCH', path, 'valid', headers, JSON.stringify({ email }));

    expect(await patch(UNKNOWN, STALE)).toEqual(refusal('not_found_error', UNKNOWN));
    expect(await patch(UNKNOWN, JSON_BODY)).toEqual(refusal('not_found_error', UNKNOWN));
    expect(await patch(USERS + id, STALE)).toEqual(refusal('precondition_failed_error', USERS + id));
  });
});

describe('with SVC_REQUIRE_IF_MATCH', () => {
  const strict = serviceUnderTest(() => ({ SVC_REQUIRE_IF_MATCH: 'yes' }));
  const call = (method: string, path: string, init: RequestInit = {}) =>
    strict.call(method, path, undefined, init);

  test.each(['PATCH', 'DELETE'])('%s without If-Match is 428, before its body is checked', async (method) => {
    const body = method === 'PATCH' ? { body: LARGE } : {};

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
