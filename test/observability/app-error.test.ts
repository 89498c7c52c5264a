import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectTo, written } from '../stage/connection.ts';
import { TIMESTAMP } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

const UNKNOWN_ID = '11111111-1111-1111-1111-111111111111';

describe('app_error', () => {
  let service: Awaited<ReturnType<typeof startService>>;

  beforeAll(async () => {
    service = await startService({ SVC_BODY_LIMIT: '1024', SVC_POSTGRES_STATEMENT_TIMEOUT: '0.3' });
  });

  afterAll(() => service.stop());

  /** All log lines of the request whose response has this ID. */
  async function eventsOf(requestId: string | null | undefined) {
    return (await service.events()).filter(({ request_id }) => request_id === requestId);
  }

  async function withinDatabase(...statements: string[]) {
    const client = new pg.Client({ ...service.database, ssl: false });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    return client;
  }

  const warning = (requestId: string | null | undefined, fields: object) => ({
    timestamp: expect.stringMatching(TIMESTAMP),
    level: 'warning',
    event: 'app_error',
    request_id: requestId,
    ...fields,
  });

  const users = '/api/v1/users/';
  const unknown = `${users}${UNKNOWN_ID}`;
  const email = 'another@example.com';

  test.each<[string, Parameters<typeof service.call>, number, RegExp]>([
    ['a path that is not percent-encoded UTF-8', ['GET', '/api/%ff'], 400, /not valid percent-encoded UTF-8/],
    ['an unknown path', ['GET', '/nowhere?token=secret'], 404, /path does not exist/],
    ['an unknown user', ['GET', unknown], 404, /no user with this id/],
    ['a method that the path does not support', ['PUT', users], 405, /supports only these methods: /],
    ['a media type that is not JSON', ['POST', users, undefined, { body: 'x' }], 415, /application\/json/],
    ['a body over the limit', ['POST', users, { email, full_name: 'x'.repeat(2000) }], 413, /1024 bytes/],
    ['invalid values', ['POST', users, { email: 'nobody' }], 422, /not valid/],
    ['an invalid query value', ['GET', `${users}?limit=0`], 422, /not valid/],
  ])('is logged for %s', async (_case, [method, path, ...rest], status, message) => {
    const response = await service.call(method, path, ...rest);
    const requestId = response.headers.get('x-request-id');

    expect(response.status).toBe(status);
    expect(await eventsOf(requestId)).toEqual([
      warning(requestId, {
        message: expect.stringMatching(message),
        status_code: status,
        path: path.split('?')[0],
      }),
    ]);
  });

  test('is logged for a missing role, with the caller, the role, the claim and the roles found', async () => {
    const authorization = `Bearer ${await service.issuer.sign({ sub: 'svc-reader', roles: ['users.read'] })}`;
    const response = await service.call('POST', users, { email }, { headers: { authorization } });
    const requestId = response.headers.get('x-request-id');

    expect(response.status).toBe(403);
    expect(await response.text()).not.toMatch(/svc-reader|users\.write/);
    expect(await eventsOf(requestId)).toEqual([
      warning(requestId, {
        message: 'svc-reader lacks the role users.write: the claim roles has the roles users.read',
        status_code: 403,
        path: users,
      }),
    ]);
  });

  test('is logged for a conflict and for a precondition that is not satisfied', async () => {
    const created = await service.call('POST', users, { email: 'once@example.com' });
    const { id } = (await created.json()) as { id: string };
    const path = `${users}${id}`;
    const conflict = await service.call('POST', users, { email: 'once@example.com' });
    const changed = await service.call('DELETE', path, undefined, { headers: { 'if-match': '"other"' } });

    expect([conflict.status, changed.status]).toEqual([409, 412]);
    expect(await eventsOf(conflict.headers.get('x-request-id'))).toMatchObject([
      { event: 'app_error', level: 'warning', status_code: 409, path: users },
    ]);
    expect(await eventsOf(changed.headers.get('x-request-id'))).toMatchObject([
      { event: 'app_error', level: 'warning', status_code: 412, path },
    ]);
  });

  test.each([
    ['bytes that are not HTTP', 'HELO example.com\r\n\r\n', 400, '/'],
    ['a request without Host', written('GET /health'), 400, '/health'],
    ['the method CONNECT', written('CONNECT example.com:443', [['Host', 'example.com:443']]), 400, '/'],
    ['headers that are too large', written('GET /health', [['X-Large', 'x'.repeat(20_000)]]), 431, '/health'],
  ])('is logged for %s, which the host itself refuses', async (_case, content, status, path) => {
    const connection = await connectTo(service.url);
    connection.send(content);
    const answer = await connection.answer();
    connection.close();
    const requestId = answer.headers['x-request-id'];

    expect(answer.status).toBe(status);
    expect(await eventsOf(requestId)).toEqual([
      warning(requestId, { message: expect.stringMatching(/./), status_code: status, path }),
    ]);
  });

  test('is logged for a slow client, which the host itself refuses', async () => {
    const connection = await connectTo(service.url);
    connection.send('GET /health HTTP/1.1\r\nHost: a\r\n');
    const answer = await connection.answer();
    connection.close();
    const requestId = answer.headers['x-request-id'];

    expect(answer.status).toBe(408);
    expect(await eventsOf(requestId)).toEqual([
      warning(requestId, { message: expect.stringMatching(/too long/), status_code: 408, path: '/' }),
    ]);
  });

  test('masks an email in the path', async () => {
    const response = await service.call('GET', '/api/v1/users/jane.doe%40example.com');

    expect(response.status).toBe(422);
    expect(await eventsOf(response.headers.get('x-request-id'))).toMatchObject([
      { event: 'app_error', path: '/api/v1/users/***' },
    ]);
  });

  test('masks a token in the path', async () => {
    const token = await service.issuer.sign();
    const response = await service.call('GET', `/api/v1/users/${token}`);

    expect(response.status).toBe(422);
    expect(await eventsOf(response.headers.get('x-request-id'))).toMatchObject([
      { event: 'app_error', path: '/api/v1/users/***' },
    ]);
  });

  // With quadratic costs this path would not end in time.
  test('costs no more for the longest path that the host accepts', async () => {
    for (let sent = 0; sent < 300; sent += 1) {
      expect((await service.call('GET', `/${'x'.repeat(15_000)}`)).status).toBe(404);
    }
  });

  test('is an error from 500 on, with the cause and its stack, which are not in the response', async () => {
    const lock = await withinDatabase('BEGIN', 'LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
    const response = await service.call('GET', users);
    await lock.end();
    const requestId = response.headers.get('x-request-id');

    expect(response.status).toBe(503);
    expect(await response.text()).not.toMatch(/55P03|PostgreSQL|stack/);
    expect(await eventsOf(requestId)).toEqual([
      {
        ...warning(requestId, { status_code: 503, path: users }),
        level: 'error',
        message: expect.stringContaining('55P03'),
        cause: {
          name: 'error',
          code: '55P03',
          message: 'canceling statement due to lock timeout',
          stack: expect.stringMatching(/canceling statement due to lock timeout\n +at /),
        },
      },
    ]);
  });

  test('has the cause of a defect of the service, and the response does not', async () => {
    const client = await withinDatabase('ALTER TABLE users RENAME COLUMN email TO mail');
    const response = await service.call('POST', users, { email: 'defect@example.com' });
    await client.query('ALTER TABLE users RENAME COLUMN mail TO email');
    await client.end();
    const requestId = response.headers.get('x-request-id');

    expect(response.status).toBe(500);
    expect(await response.text()).not.toMatch(/42703|column|mail|stack/);
    expect(await eventsOf(requestId)).toEqual([
      {
        ...warning(requestId, { status_code: 500, path: users }),
        level: 'error',
        message: expect.stringContaining('column "email" of relation "users" does not exist'),
        cause: {
          name: 'error',
          code: '42703',
          message: 'column "email" of relation "users" does not exist',
          stack: expect.stringMatching(/\n +at /),
        },
      },
    ]);
  });

  test('is logged for every refused /ready', async () => {
    const lock = await withinDatabase('BEGIN', 'LOCK TABLE kysely_migration IN ACCESS EXCLUSIVE MODE');
    const response = await service.call('GET', '/ready');
    await lock.end();
    const requestId = response.headers.get('x-request-id');

    expect(response.status).toBe(503);
    expect(await eventsOf(requestId)).toMatchObject([
      { event: 'app_error', level: 'error', status_code: 503, path: '/ready', cause: expect.anything() },
    ]);
  });
});
