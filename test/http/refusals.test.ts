import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { createUser } from '../../handlers/users/create.ts';
import { createUsers } from '../../handlers/users/create-batch.ts';
import { deleteUser } from '../../handlers/users/delete.ts';
import { getUser } from '../../handlers/users/get.ts';
import { listUsers } from '../../handlers/users/list.ts';
import { updateUser } from '../../handlers/users/update.ts';
import { unmatched } from '../../lib/http/unmatched.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import {
  forbidden,
  freshAddress,
  options,
  refusal,
  responseFromResult,
  type ServiceResponse,
} from '../stage/responses.ts';

const UNKNOWN = '00000000-0000-0000-0000-000000000000';
const USERS = '/api/v1/users/';
const BATCH = '/api/v1/users/batch';

let stage: Awaited<ReturnType<typeof startComposition>>;

beforeAll(async () => {
  stage = await startComposition();
});

afterAll(() => stage.stop());

const call = (...request: Parameters<typeof stage.call>) => stage.call(...request);

describe('401', () => {
  test.each([
    ['there is no token', createUser, 'refusals/401-no-token', USERS],
    ['the scheme is not Bearer', createUser, 'refusals/401-other-scheme', USERS],
    ['the token is malformed', getUser, 'refusals/401-malformed-token', USERS + UNKNOWN],
    ['there are two Authorization headers', getUser, 'refusals/401-two-tokens', USERS + UNKNOWN],
    ['the token is in the query', getUser, 'refusals/401-token-in-query', USERS + UNKNOWN],
  ])('when %s', async (_case, endpoint, name, instance) => {
    expect(await call(endpoint, name, { id: UNKNOWN })).toEqual(refusal('unauthorized_error', instance));
  });

  test('when an event brings a verified token that the host has not looked up', async () => {
    // The service has verified a token, so it has a key set.
    await stage.createUser();
    const event = await eventOf('getUser', { token: 'made.up.token', id: UNKNOWN });
    const principal = { subject: 'forged', roles: ['users.read'] };
    const forged = [0, 1, 2].map((generation) => ({ principal, exp: 4e9, generation }));

    const statuses = forged.map(async (verifiedToken) => {
      const sent = JSON.parse(JSON.stringify({ ...event, verifiedToken }));
      return (await getUser.bind(stage.service)(sent)).statusCode;
    });

    expect(await Promise.all(statuses)).toEqual([401, 401, 401]);
  });

  test('precedes every check of the body', async () => {
    const token = '';
    const response = await call(createUser, 'refusals/422-body-values', { token });

    expect(response).toEqual(refusal('unauthorized_error', USERS));
  });
});

describe('403', () => {
  test.each([
    ['createUser', 'users.read', 'users.write', createUser, USERS],
    ['listUsers', 'users.write', 'users.read', listUsers, USERS],
    ['getUser', 'users.write', 'users.read', getUser, USERS + UNKNOWN],
    ['updateUser', 'users.read', 'users.write', updateUser, USERS + UNKNOWN],
    ['refusals/403-role-missing', 'users.read', 'users.write', deleteUser, USERS + UNKNOWN],
  ])('%s with %s alone: the role %s is missing', async (name, held, lacked, endpoint, instance) => {
    const token = await stage.issuer.tokenFor(held, 'orders.write');

    expect(await call(endpoint, name, { token, id: UNKNOWN })).toEqual(forbidden(lacked, instance));
  });
});

describe('404', () => {
  test.each([
    ['refusals/404-unknown-user', getUser],
    ['updateUser', updateUser],
    ['refusals/412-other-version', updateUser],
    ['deleteUser', deleteUser],
  ])('when no user has the given id: %s', async (name, endpoint) => {
    expect(await call(endpoint, name, { id: UNKNOWN })).toEqual(refusal('not_found_error', USERS + UNKNOWN));
  });
});

describe('405 is the response', () => {
  test('when a gateway calls the function of a user for the path of the batch, before the token', async () => {
    expect(await call(getUser, 'refusals/405-batch-as-user', { token: '' })).toEqual(
      refusal('method_not_allowed_error', BATCH, { headers: { allow: 'POST, OPTIONS' } }),
    );
  });
});

describe('409', () => {
  test('when the email already belongs to a user', async () => {
    await stage.createUser({ email: 'ada@example.com' });

    expect(await call(createUser, 'refusals/409-email-taken')).toEqual(refusal('conflict_error', USERS));
  });

  test('when an update takes the email of another user', async () => {
    const { id } = await stage.createUser();
    const { email } = await stage.createUser();
    const body = JSON.stringify({ email });

    expect(await call(updateUser, 'updateUser', { id, body })).toEqual(refusal('conflict_error', USERS + id));
  });
});

describe('409 of a batch', () => {
  test('names all emails that are already taken', async () => {
    await stage.createUser({ email: 'GRACE@example.com' });
    await stage.createUser({ email: 'katherine@example.com' });

    expect(await call(createUsers, 'refusals/409-emails-taken')).toEqual(
      refusal('conflict_error', BATCH, { errors: ['#/items/1/email', '#/items/2/email'] }),
    );
  });
});

describe('an idempotency key that was already used', () => {
  test('is 422 with other values, and 410 after its user was deleted', async () => {
    const body = JSON.stringify({ email: 'keyed@example.com' });
    const created = await call(createUser, 'createUser-key', { body });

    expect(await call(createUser, 'refusals/422-key-reused')).toEqual(
      refusal('idempotency_key_reused_error', USERS),
    );
    const { id } = created.body as { id: string };
    expect((await call(deleteUser, 'deleteUser', { id })).status).toBe(204);
    expect(await call(createUser, 'refusals/410-user-gone', { body })).toEqual(refusal('gone_error', USERS));
  });
});

describe('412', () => {
  test('if If-Match is not satisfied', async () => {
    const { id } = await stage.createUser();

    expect(await call(updateUser, 'refusals/412-other-version', { id })).toEqual(
      refusal('precondition_failed_error', USERS + id),
    );
  });
});

describe('413', () => {
  test('if the body exceeds SVC_BODY_LIMIT', async () => {
    expect(await call(createUser, 'refusals/413-body-too-large')).toEqual(
      refusal('payload_too_large_error', USERS),
    );
  });

  test('by the count of the bytes that base64 encodes', async () => {
    const email = freshAddress();
    const fitting = JSON.stringify({ email, note: 'x'.repeat(60_000) });
    const token = await stage.issuer.sign();
    const event = await eventOf('createUser', { token });
    const send = async (text: string): Promise<ServiceResponse> => {
      const inBase64 = { ...event, body: Buffer.from(text).toString('base64'), isBase64Encoded: true };
      return responseFromResult(await createUser.bind(stage.service)(inBase64));
    };

    expect((await send(fitting)).status).toBe(201);
    expect(await send('x'.repeat(65_537))).toEqual(refusal('payload_too_large_error', USERS));
  });
});

describe('415', () => {
  test.each([
    ['is not declared application/json', 'refusals/415-body-not-declared'],
    ['has a Content-Encoding', 'refusals/415-body-encoded'],
  ])('when the body %s', async (_case, name) => {
    expect(await call(createUser, name)).toEqual(refusal('unsupported_media_type_error', USERS));
  });
});

describe('422', () => {
  const user42 = `${USERS}42`;

  test.each([
    ['body values', createUser, 'refusals/422-body-values', ['#/email', '#/full_name'], USERS],
    ['a body that is not JSON', updateUser, 'refusals/422-body-not-json', ['#'], USERS + UNKNOWN],
    ['a body that is not UTF-8', createUser, 'refusals/422-body-not-utf8', ['#'], USERS],
    ['an empty body', createUser, 'refusals/422-body-empty', ['#'], USERS],
    ['query values', listUsers, 'refusals/422-query-values', ['skip', 'limit'], USERS],
    [
      'filters and the order',
      listUsers,
      'refusals/422-query-filters',
      ['email', 'is_active', 'ids', 'created_after', 'created_before', 'sort'],
      USERS,
    ],
    ['a cursor and a skip', listUsers, 'refusals/422-query-cursor', ['skip', 'cursor'], USERS],
    ['a repeated query parameter', listUsers, 'refusals/422-query-repeated', ['limit'], USERS],
    ['a header value', createUser, 'refusals/422-header-value', ['Idempotency-Key'], USERS],
    [
      'a batch',
      createUsers,
      'refusals/422-batch-values',
      ['#/mode', '#/items/0/email', '#/items/1/email', '#/items/1/full_name'],
      BATCH,
    ],
    ['a path value', getUser, 'refusals/422-path-value', ['user_id'], user42],
  ])('names all faults of %s', async (_case, endpoint, name, errors, instance) => {
    expect(await call(endpoint, name, { id: UNKNOWN })).toEqual(
      refusal('validation_error', instance, { errors }),
    );
  });

  test('names the faults of path and body together', async () => {
    const event = await eventOf('updateUser', {
      token: await stage.issuer.sign(),
      body: '{"email":"none","is_active":"no"}',
    });
    const elsewhere = { ...event, rawPath: user42, pathParameters: { user_id: '42' } };

    expect(responseFromResult(await updateUser.bind(stage.service)(elsewhere))).toEqual(
      refusal('validation_error', user42, { errors: ['user_id', '#/email', '#/is_active'] }),
    );
  });
});

describe('the function of unknown paths', () => {
  const rest = unmatched(endpoints.map(({ route }) => route));

  test('responds 400 to a path that is not valid percent-encoded UTF-8', async () => {
    expect(await call(rest, 'refusals/400-path-not-decodable')).toEqual(
      refusal('bad_request_error', '/api/v1/users/%E0%A4%A'),
    );
  });

  test('responds 404 to an unknown path', async () => {
    expect(await call(rest, 'refusals/404-unknown-path')).toEqual(
      refusal('not_found_error', '/api/v2/users/'),
    );
  });

  test('responds 405 with Allow to another method on a known path', async () => {
    const headers = { allow: 'GET, HEAD, PATCH, DELETE, OPTIONS' };

    expect(await call(rest, 'refusals/405-other-method', { id: UNKNOWN })).toEqual(
      refusal('method_not_allowed_error', USERS + UNKNOWN, { headers }),
    );
  });

  test('responds 204 with Allow to OPTIONS on a known path', async () => {
    expect(await call(rest, 'users-options')).toEqual(options('POST, GET, HEAD, OPTIONS'));
  });
});

test("a refusal has the caller's request ID, and is logged under it", async () => {
  const headers = { 'x-request-id': 'call-7f3a' };

  const response = await call(getUser, 'refusals/404-unknown-user', { id: UNKNOWN, headers });

  expect(response.headers['x-request-id']).toBe('call-7f3a');
  expect(stage.lines.filter((line) => line.request_id === 'call-7f3a')).toMatchObject([
    { event: 'app_error', level: 'warning', status_code: 404, path: USERS + UNKNOWN },
  ]);
});
