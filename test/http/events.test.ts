import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { createUser } from '../../handlers/users/create.ts';
import { deleteUser } from '../../handlers/users/delete.ts';
import { getUser } from '../../handlers/users/get.ts';
import { updateUser } from '../../handlers/users/update.ts';
import { unmatched } from '../../lib/endpoint/unmatched.ts';
import { startComposition } from '../stage/composition.ts';
import { type EventParticulars, eventOf } from '../stage/events.ts';
import { freshAddress, type Refusal, refusal, responseFromResult, USERS } from '../stage/responses.ts';

const FOLDER = new URL('../../events/', import.meta.url);
const jsonIn = (folder: string) =>
  readdirSync(new URL(folder, FOLDER)).flatMap((file) => /^(.+)\.json$/.exec(file)?.[1] ?? []);

const rest = unmatched(endpoints.map(({ route }) => route));

let stage: Awaited<ReturnType<typeof startComposition>>;

beforeAll(async () => {
  stage = await startComposition();
  for (const name of ['ada', 'GRACE', 'katherine']) await stage.createUser({ email: `${name}@example.com` });
  return () => stage.stop();
});

/** Calls the function that API Gateway would call. A route without parameters comes first. */
async function call(name: string, particulars: EventParticulars = {}) {
  const { rawPath, requestContext } = await eventOf(name);
  const { method } = requestContext.http;
  const [endpoint = rest] = endpoints
    .filter(({ route }) => route.method === (method === 'HEAD' ? 'GET' : method))
    .filter(({ route }) => new RegExp(`^${route.path.replace(/\{\w+\}/, '[^/]+')}$`).test(rawPath))
    .sort((one, other) => one.route.path.indexOf('{') - other.route.path.indexOf('{'));
  return { rawPath, response: await stage.call(endpoint, name, particulars) };
}

describe('an event gets the status of its operation:', () => {
  const statusOf = (name: string) =>
    /^createUser(?!s-partial)/.test(name) ? 201 : /^deleteUser|options/.test(name) ? 204 : 200;
  const items = () => ({ items: [{ email: freshAddress() }] });
  const bodies: Readonly<Record<string, () => object>> = {
    createUser: () => ({ email: freshAddress() }),
    createUsers: items,
  };

  const names = jsonIn('.').filter((name) => name !== 'createUser-key');

  test.each(names.map((name) => [name, statusOf(name)] as const))('%s, %i', async (name, status) => {
    const { id } = await stage.createUser();
    const body = bodies[name]?.();

    const particulars = { id, ...(body && { body: JSON.stringify(body) }) };
    expect((await call(name, particulars)).response.status).toBe(status);
  });
});

const CODES: Readonly<Record<string, Refusal>> = {
  400: 'bad_request_error',
  401: 'unauthorized_error',
  403: 'forbidden_error',
  404: 'not_found_error',
  405: 'method_not_allowed_error',
  409: 'conflict_error',
  412: 'precondition_failed_error',
  413: 'payload_too_large_error',
  415: 'unsupported_media_type_error',
  422: 'validation_error',
  '410-cursor-expired': 'cursor_expired_error',
};

/** The places of all faults, in order. */
const ERRORS: Readonly<Record<string, readonly string[]>> = {
  '409-emails-taken': ['#/items/1/email', '#/items/2/email'],
  '422-batch-values': ['#/mode', '#/items/0/email', '#/items/1/email', '#/items/1/full_name'],
  '422-body-empty': ['#'],
  '422-body-not-json': ['#'],
  '422-body-not-utf8': ['#'],
  '422-body-values': ['#/email', '#/full_name'],
  '422-changes-of-user': ['user_id', 'cursor', 'limit'],
  '422-changes-query': ['cursor', 'exclude_actor', 'wait', 'limit'],
  '422-header-value': ['Idempotency-Key'],
  '422-path-value': ['user_id'],
  '422-query-cursor': ['skip', 'cursor'],
  '422-query-filters': ['email', 'is_active', 'ids', 'created_after', 'created_before', 'sort'],
  '422-query-repeated': ['limit'],
  '422-query-values': ['skip', 'limit'],
};

describe('a refused event gets the problem of its name, with all faults:', () => {
  const alone = jsonIn('refusals').filter((name) => !/^(410-user-gone|422-key-reused)$/.test(name));

  test.each(alone)('%s', async (name) => {
    const token = name.startsWith('403') && (await stage.issuer.tokenFor('users.read', 'orders.write'));
    const existing = name.startsWith('412') && (await stage.createUser());
    const { response, rawPath } = await call(`refusals/${name}`, {
      ...(token && { token }),
      ...(existing && { id: existing.id }),
    });
    const code = CODES[name] ?? (CODES[name.slice(0, 3)] as Refusal);
    const { [name]: errors } = ERRORS;
    const instance = existing ? USERS + existing.id : rawPath;

    expect(response.body).toEqual(refusal(code, instance, { ...(errors && { errors }) }).body);
  });

  test('a key with other values, and a key of a deleted user', async () => {
    const body = JSON.stringify({ email: 'keyed@example.com' });
    const created = await stage.call(createUser, 'createUser-key', { body });
    const { id } = created.body as { id: string };
    expect(created.status).toBe(201);
    expect(await stage.call(createUser, 'refusals/422-key-reused')).toEqual(
      refusal('idempotency_key_reused_error', USERS),
    );
    expect((await stage.call(deleteUser, 'deleteUser', { id })).status).toBe(204);
    expect(await stage.call(createUser, 'refusals/410-user-gone', { body })).toEqual(
      refusal('gone_error', USERS),
    );
  });

  test.each([updateUser, deleteUser])('a write of a user that does not exist', async (endpoint) => {
    const response = await stage.call(endpoint, endpoint.route.operationId);
    expect(response.status).toBe(404);
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

test('the limit of a body counts the bytes that base64 encodes', async () => {
  const fitting = JSON.stringify({ email: freshAddress(), note: 'x'.repeat(60_000) });
  const event = await eventOf('createUser', { token: await stage.issuer.sign() });
  const send = async (text: string) => {
    const inBase64 = { ...event, body: Buffer.from(text).toString('base64'), isBase64Encoded: true };
    return responseFromResult(await createUser.bind(stage.service)(inBase64)).status;
  };

  expect([await send(fitting), await send('x'.repeat(65_537))]).toEqual([201, 413]);
});

test("a refusal has the caller's request ID, and is logged under it", async () => {
  const headers = { 'x-request-id': 'call-7f3a' };

  const response = await stage.call(getUser, 'refusals/404-unknown-user', { headers });

  expect(response.headers['x-request-id']).toBe('call-7f3a');
  expect(stage.lines.filter((line) => line.request_id === 'call-7f3a')).toMatchObject([
    { event: 'app_error', level: 'warning', status_code: 404 },
  ]);
});
