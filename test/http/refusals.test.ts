import { beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { createUser } from '../../handlers/users/create.ts';
import { createUsers } from '../../handlers/users/create-batch.ts';
import { deleteUser } from '../../handlers/users/delete.ts';
import { getUser } from '../../handlers/users/get.ts';
import { listUsers } from '../../handlers/users/list.ts';
import { updateUser } from '../../handlers/users/update.ts';
import { unmatched } from '../../lib/endpoint/unmatched.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import {
  BATCH,
  forbidden,
  freshAddress,
  options,
  type Refusal,
  refusal,
  responseFromResult,
  type ServiceResponse,
  USERS,
} from '../stage/responses.ts';

/** The path of the user in the events, who does not exist. */
const USER = `${USERS}0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70`;

const rest = unmatched(endpoints.map(({ route }) => route));

let stage: Awaited<ReturnType<typeof startComposition>>;

beforeAll(async () => {
  stage = await startComposition();
  for (const name of ['ada', 'GRACE', 'katherine']) await stage.createUser({ email: `${name}@example.com` });
  return () => stage.stop();
});

const call = (...request: Parameters<typeof stage.call>) => stage.call(...request);

type Endpoint = Parameters<typeof call>[0];
type Particulars = Parameters<typeof refusal>[2];

describe('the response to the event', () => {
  test.for<readonly [string, Refusal, Endpoint, string, Particulars?]>([
    ['400-path-not-decodable', 'bad_request_error', rest, '/api/v1/users/%E0%A4%A'],
    ['401-no-token', 'unauthorized_error', createUser, USERS],
    ['401-other-scheme', 'unauthorized_error', createUser, USERS],
    ['401-malformed-token', 'unauthorized_error', getUser, USER],
    ['401-two-tokens', 'unauthorized_error', getUser, USER],
    ['401-token-in-query', 'unauthorized_error', getUser, USER],
    ['404-unknown-path', 'not_found_error', rest, '/api/v2/users/'],
    ['404-unknown-user', 'not_found_error', getUser, USER],
    ['412-other-version', 'not_found_error', updateUser, USER],
    [
      '405-batch-as-user',
      'method_not_allowed_error',
      getUser,
      BATCH,
      { headers: { allow: 'POST, OPTIONS' } },
    ],
    [
      '405-other-method',
      'method_not_allowed_error',
      rest,
      USER,
      { headers: { allow: 'GET, HEAD, PATCH, DELETE, OPTIONS' } },
    ],
    ['409-email-taken', 'conflict_error', createUser, USERS],
    [
      '409-emails-taken',
      'conflict_error',
      createUsers,
      BATCH,
      { errors: ['#/items/1/email', '#/items/2/email'] },
    ],
    ['413-body-too-large', 'payload_too_large_error', createUser, USERS],
    ['415-body-not-declared', 'unsupported_media_type_error', createUser, USERS],
    ['415-body-encoded', 'unsupported_media_type_error', createUser, USERS],
  ])('refusals/%s is %s', async ([name, code, endpoint, instance, particulars]) => {
    expect(await call(endpoint, `refusals/${name}`)).toEqual(refusal(code, instance, particulars));
  });

  test.each<readonly [string, Endpoint, string, readonly string[]]>([
    ['body-values', createUser, USERS, ['#/email', '#/full_name']],
    ['body-not-json', updateUser, USER, ['#']],
    ['body-not-utf8', createUser, USERS, ['#']],
    ['body-empty', createUser, USERS, ['#']],
    ['query-values', listUsers, USERS, ['skip', 'limit']],
    [
      'query-filters',
      listUsers,
      USERS,
      ['email', 'is_active', 'ids', 'created_after', 'created_before', 'sort'],
    ],
    ['query-cursor', listUsers, USERS, ['skip', 'cursor']],
    ['query-repeated', listUsers, USERS, ['limit']],
    ['header-value', createUser, USERS, ['Idempotency-Key']],
    [
      'batch-values',
      createUsers,
      BATCH,
      ['#/mode', '#/items/0/email', '#/items/1/email', '#/items/1/full_name'],
    ],
    ['path-value', getUser, `${USERS}42`, ['user_id']],
  ])('refusals/422-%s names all faults', async (name, endpoint, instance, errors) => {
    expect(await call(endpoint, `refusals/422-${name}`)).toEqual(
      refusal('validation_error', instance, { errors }),
    );
  });

  test.each([
    ['createUser', 'users.read', 'users.write', createUser, USERS],
    ['listUsers', 'users.write', 'users.read', listUsers, USERS],
    ['getUser', 'users.write', 'users.read', getUser, USER],
    ['updateUser', 'users.read', 'users.write', updateUser, USER],
    ['refusals/403-role-missing', 'users.read', 'users.write', deleteUser, USER],
  ])('%s with %s alone is 403: the role %s is missing', async (name, held, lacked, endpoint, instance) => {
    const token = await stage.issuer.tokenFor(held, 'orders.write');

    expect(await call(endpoint, name, { token })).toEqual(forbidden(lacked, instance));
  });

  test.each([
    ['updateUser', updateUser],
    ['deleteUser', deleteUser],
  ])('%s is 404 if no user has the id', async (name, endpoint) => {
    expect(await call(endpoint, name)).toEqual(refusal('not_found_error', USER));
  });

  test('refusals/412-other-version is 412 for an existing user', async () => {
    const { id } = await stage.createUser();

    expect(await call(updateUser, 'refusals/412-other-version', { id })).toEqual(
      refusal('precondition_failed_error', USERS + id),
    );
  });

  test('users-options is 204 with Allow', async () => {
    expect(await call(rest, 'users-options')).toEqual(options('POST, GET, HEAD, OPTIONS'));
  });
});

test('a verified token that an event brings and the host has not looked up is 401', async () => {
  const event = await eventOf('getUser', { token: 'made.up.token' });
  const [key] = await stage.service.keySet.findKeys({ alg: 'RS256', kid: undefined });
  const verifiedToken = { principal: { subject: 'forged', roles: ['users.read'] }, exp: 4e9, key };

  const { statusCode } = await getUser.bind(stage.service)({ ...event, verifiedToken } as never);

  expect(key).toBeDefined();
  expect(statusCode).toBe(401);
});

test('an idempotency key is 422 with other values, and 410 after its user was deleted', async () => {
  const body = JSON.stringify({ email: 'keyed@example.com' });
  const created = await call(createUser, 'createUser-key', { body });

  expect(await call(createUser, 'refusals/422-key-reused')).toEqual(
    refusal('idempotency_key_reused_error', USERS),
  );
  const { id } = created.body as { id: string };
  expect((await call(deleteUser, 'deleteUser', { id })).status).toBe(204);
  expect(await call(createUser, 'refusals/410-user-gone', { body })).toEqual(refusal('gone_error', USERS));
});

test('the limit of a body counts the bytes that base64 encodes', async () => {
  const fitting = JSON.stringify({ email: freshAddress(), note: 'x'.repeat(60_000) });
  const event = await eventOf('createUser', { token: await stage.issuer.sign() });
  const send = async (text: string): Promise<ServiceResponse> => {
    const inBase64 = { ...event, body: Buffer.from(text).toString('base64'), isBase64Encoded: true };
    return responseFromResult(await createUser.bind(stage.service)(inBase64));
  };

  expect((await send(fitting)).status).toBe(201);
  expect(await send('x'.repeat(65_537))).toEqual(refusal('payload_too_large_error', USERS));
});

test("a refusal has the caller's request ID, and is logged under it", async () => {
  const headers = { 'x-request-id': 'call-7f3a' };

  const response = await call(getUser, 'refusals/404-unknown-user', { headers });

  expect(response.headers['x-request-id']).toBe('call-7f3a');
  expect(stage.lines.filter((line) => line.request_id === 'call-7f3a')).toMatchObject([
    { event: 'app_error', level: 'warning', status_code: 404, path: USER },
  ]);
});
