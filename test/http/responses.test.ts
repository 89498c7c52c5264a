import { beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { BATCH, freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

// One test for each sentence about a role, a status or a header. `npm test` runs this file first, so that it names the
// sentence that a broken line breaks. Other files assert complete responses.

const UNKNOWN = '11111111-1111-1111-1111-111111111111';
const CHANGES = `${USERS}changes`;
const BOTH = ['users.read', 'users.write'];

const service = serviceUnderTest();
const { call, createUser } = service;

const callAs = async (roles: readonly string[], method: string, path: string, body?: unknown, more = {}) => {
  const authorization = roles.length > 0 ? `Bearer ${await service.issuer.tokenFor(...roles)}` : '';
  return call(method, path, body, { headers: { authorization, ...more } });
};

/** Its role, and the status of its success. `{id}` is the id of a user. */
type Operation = readonly [line: string, role: string, status: number, body?: () => object];

const OPERATIONS: readonly Operation[] = [
  [`POST ${USERS}`, 'users.write', 201, () => ({ email: freshAddress() })],
  [`POST ${BATCH}`, 'users.write', 201, () => ({ items: [{ email: freshAddress() }] })],
  [`GET ${USERS}`, 'users.read', 200],
  [`GET ${USERS}{id}`, 'users.read', 200],
  [`PATCH ${USERS}{id}`, 'users.write', 200, () => ({})],
  [`DELETE ${USERS}{id}`, 'users.write', 204],
  [`GET ${CHANGES}`, 'users.read', 200],
  [`GET ${USERS}{id}/changes`, 'users.read', 200],
];

async function callOperation([line, , , body]: Operation, roles: readonly string[]) {
  const [method = '', path = ''] = line.split(' ');
  return callAs(roles, method, path.replace('{id}', (await createUser()).id), body?.());
}

describe('the role', () => {
  test.for(OPERATIONS)('of %s is %s', async (operation) => {
    const [, role] = operation;
    const other = BOTH.filter((one) => one !== role);
    const { status, headers } = await callOperation(operation, other);
    const refused = [status, headers['www-authenticate']];

    expect(refused).toEqual([403, `Bearer error="insufficient_scope", scope="${role}"`]);
    expect((await callOperation(operation, [role])).status).toBeLessThan(300);
  });

  test('api.superuser is accepted on every route', async () => {
    for (const operation of OPERATIONS) {
      const { status } = await callOperation(operation, ['api.superuser']);
      expect([operation[0], status]).toEqual([operation[0], operation[2]]);
    }
  });
});

describe('the status', () => {
  test.for(OPERATIONS)('of %s, which requires %s, is %i', async (operation) => {
    expect((await callOperation(operation, BOTH)).status).toBe(operation[2]);
  });

  test('of a read is 304 if the caller has the version', async () => {
    const path = USERS + (created.body as UserBody).id;
    const headers = { 'if-none-match': created.headers.etag ?? '' };
    expect((await call('GET', path, undefined, { headers })).status).toBe(304);
  });

  test('of a partial batch is 200', async () => {
    const body = { mode: 'partial', items: [{ email: 'none' }] };
    expect((await call('POST', BATCH, body)).status).toBe(200);
  });

  test.each(['/health', '/ready'])('of %s is 200 without a token', async (path) => {
    expect((await fetch(service.url + path)).status).toBe(200);
  });
});

type Refused = readonly [
  code: string,
  status: number,
  title: string,
  line: string,
  more?: { readonly roles?: readonly string[]; readonly body?: unknown; readonly headers?: object },
];

/** A request for each problem. */
const PROBLEMS: readonly Refused[] = [
  ['bad_request_error', 400, 'Bad Request', `GET ${USERS}%zz`],
  ['unauthorized_error', 401, 'Unauthorized', `GET ${USERS}`, { roles: [] }],
  ['forbidden_error', 403, 'Forbidden', `GET ${USERS}`, { roles: ['other'] }],
  ['not_found_error', 404, 'Not Found', `GET ${USERS}${UNKNOWN}`],
  ['method_not_allowed_error', 405, 'Method Not Allowed', `PUT ${USERS}`],
  ['conflict_error', 409, 'Conflict', `POST ${USERS}`, { body: { email: 'taken@example.com' } }],
  ['cursor_expired_error', 410, 'Gone', `GET ${CHANGES}?cursor=OWY4NmQwODEuLjQwMDAwMDAu`],
  [
    'precondition_failed_error',
    412,
    'Precondition Failed',
    `GET ${USERS}{id}`,
    { headers: { 'if-match': '"9"' } },
  ],
  ['payload_too_large_error', 413, 'Payload Too Large', `POST ${USERS}`, { body: 'x'.repeat(65_537) }],
  [
    'unsupported_media_type_error',
    415,
    'Unsupported Media Type',
    `PATCH ${USERS}{id}`,
    { body: {}, headers: { 'content-type': 'text/plain' } },
  ],
  ['validation_error', 422, 'Unprocessable Entity', `POST ${USERS}`, { body: { email: 'none' } }],
];

const refused = new Map<string, Awaited<ReturnType<typeof call>>>();
let unready: Response;
let created: Awaited<ReturnType<typeof call>>;

beforeAll(async () => {
  created = await call('POST', USERS, { email: 'taken@example.com' });
  const { id } = created.body as UserBody;
  for (const [code, , , line, { roles = BOTH, body, headers = {} } = {}] of PROBLEMS) {
    const [method = '', path = ''] = line.split(' ');
    const more = { 'x-request-id': 'of-the-caller', ...headers };
    refused.set(code, await callAs(roles, method, path.replace('{id}', id), body, more));
  }
  const cutOff = await startService({ SVC_POSTGRES_PORT: String(await freePort()) }, service, {
    waitsUntilReady: false,
  });
  unready = await fetch(`${cutOff.url}/ready`);
  await cutOff.stop();
});

const headersOf = (code: string) => refused.get(code)?.headers ?? {};

describe('the problem', () => {
  test.for(PROBLEMS)('%s is %i with the title %s', async ([code, status, title]) => {
    expect(refused.get(code)).toMatchObject({ status, body: { title } });
  });

  test('service_unavailable_error of /ready is 503 with Retry-After', async () => {
    expect(unready.status).toBe(503);
    expect(await unready.json()).toMatchObject({ title: 'Service Unavailable' });
    expect(unready.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  });

  const membersOf = (name: string) =>
    [...refused.values()].map(({ body }) => (body as Record<string, unknown>)[name]);

  test('has a type that ends with its code', () => {
    expect(membersOf('type')).toEqual(PROBLEMS.map(([code]) => `urn:svc:error:${code}`));
  });

  test('has the status of the response', () => {
    expect(membersOf('status')).toEqual([...refused.values()].map(({ status }) => status));
  });

  test('has the path of the request as its instance', () => {
    const { id } = created.body as UserBody;
    const paths = PROBLEMS.map(([, , , line]) => line.replace('{id}', id).split(/[ ?]/)[1]);
    expect(membersOf('instance')).toEqual(paths);
  });

  test('of a 401 and a 403 has the status text as its detail', () => {
    expect(membersOf('detail').slice(1, 3)).toEqual(['Unauthorized', 'Forbidden']);
  });
});

describe('the header', () => {
  test('X-Content-Type-Options of every response is nosniff', async () => {
    const responses = [
      created,
      await call('GET', '/health'),
      await call('OPTIONS', USERS),
      ...refused.values(),
    ];
    expect(new Set(responses.map(({ headers }) => headers['x-content-type-options']))).toEqual(
      new Set(['nosniff']),
    );
  });

  test('X-Request-ID of a response is that of the request', () => {
    for (const { headers } of refused.values()) expect(headers['x-request-id']).toBe('of-the-caller');
  });

  test('Cache-Control of a success about users is private, no-cache', async () => {
    const { id } = created.body as UserBody;
    const notModified = await call('GET', USERS + id, undefined, { headers: { 'if-none-match': '*' } });
    const successes = [created, notModified, await call('GET', USERS), await call('GET', CHANGES)];
    for (const { headers } of successes) expect(headers['cache-control']).toBe('private, no-cache');
  });

  test('Cache-Control of errors and probes is no-store', async () => {
    for (const { headers } of [
      await call('GET', '/health'),
      await call('GET', '/ready'),
      ...refused.values(),
    ])
      expect(headers['cache-control']).toBe('no-store');
  });

  test('Content-Type is application/json; charset=utf-8', () => {
    expect(created.headers['content-type']).toBe('application/json; charset=utf-8');
  });

  test('Content-Type of a problem is application/problem+json', () => {
    for (const { headers } of refused.values())
      expect(headers['content-type']).toBe('application/problem+json');
  });

  test('Location of a create is the path of the user', () => {
    expect(created.headers.location).toBe(USERS + (created.body as UserBody).id);
  });

  test('ETag is the version of the user, as a strong tag', async () => {
    const path = USERS + (created.body as UserBody).id;
    const tags = [created, await call('GET', path), await call('PATCH', path, {}), await call('HEAD', path)];
    expect(tags.map(({ headers }) => headers.etag)).toEqual(['"1"', '"1"', '"2"', '"2"']);
  });

  test('WWW-Authenticate of a 401 is Bearer', () => {
    expect(headersOf('unauthorized_error')['www-authenticate']).toBe('Bearer');
  });

  test('Allow of a 405 lists the methods', () => {
    expect(headersOf('method_not_allowed_error').allow).toBe('POST, GET, HEAD, OPTIONS');
  });

  test('Accept-Patch of a 415 to PATCH lists the media types', () => {
    const accepted = 'application/json, application/merge-patch+json';
    expect(headersOf('unsupported_media_type_error')['accept-patch']).toBe(accepted);
  });

  test('Link of a page leads to the next one', async () => {
    await createUser();
    const { headers } = await call('GET', `${USERS}?limit=1`);
    expect(headers.link).toMatch(/^<\/api\/v1\/users\/\?[^<>]*cursor=[\w-]+[^<>]*>; rel="next"$/);
  });
});

test('the columns have the same precision as the responses', async () => {
  const { id } = await createUser();
  const changed = (await call('PATCH', USERS + id, {})).body as UserBody;
  const [row] = await service.database.query(`
    SELECT created_at = '${changed.created_at}' AS created, updated_at = '${changed.updated_at}' AS updated
    FROM users WHERE id = '${id}'
  `);

  expect(row).toEqual({ created: true, updated: true });
});

describe('an id', () => {
  const METHODS = [['GET'], ['PATCH', {}], ['DELETE']] as const;

  test('is valid in either case', async () => {
    const given = await createUser();

    expect((await call('GET', USERS + given.id.toUpperCase())).body).toEqual(given);
  });

  test('of any UUID version is valid, and 404 if no user has it', async () => {
    for (const id of [UNKNOWN, UNKNOWN.replaceAll('1', 'f'), UNKNOWN.replaceAll('1', '0')])
      for (const [method, body] of METHODS)
        expect([id, (await call(method, USERS + id, body)).status]).toEqual([id, 404]);
  });

  test('in another form is 422, and errors names user_id', async () => {
    const ids = ['42', `%7B${UNKNOWN}%7D`, UNKNOWN.replaceAll('-', ''), `${UNKNOWN}%00`, 'x'.repeat(4000)];
    const faulty = { status: 422, body: { errors: [{ parameter: 'user_id' }] } };

    for (const id of ids)
      for (const [method, body] of METHODS)
        expect([id, await call(method, USERS + id, body)]).toMatchObject([id, faulty]);
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
