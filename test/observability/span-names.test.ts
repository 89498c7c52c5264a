import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { isServer, startTracedService, traceOfCaller } from '../stage/built-service.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { USERS } from '../stage/responses.ts';

const USER = `${USERS}{user_id}`;

const service = forAllTests(() => startTracedService());

test.each<[string, string, number, { path: (id: string) => string; body?: object; route?: string }]>([
  ['GET /api/v1/users/', 'GET', 200, { path: () => '/api/v1/users', route: USERS }],
  ['HEAD /api/v1/users/', 'HEAD', 200, { path: () => USERS, route: USERS }],
  ['GET /api/v1/users/{user_id}', 'GET', 422, { path: () => `${USERS}x`, route: USER }],
  ['PATCH /api/v1/users/{user_id}', 'PATCH', 200, { path: (id) => USERS + id, body: {}, route: USER }],
  ['DELETE /api/v1/users/{user_id}', 'DELETE', 204, { path: (id) => USERS + id, route: USER }],
  ['GET', 'GET', 404, { path: (id) => `/nowhere/${id}` }],
  ['HTTP', 'PROPFIND', 405, { path: (id) => USERS + id }],
])(
  'the name of a span has the route and not the path: %s (%s, %i)',
  async (name, method, status, request) => {
    const id = await service.createUser();
    const { traceId, headers } = traceOfCaller();
    const response = await service.call(method, request.path(id), request.body, { headers });
    expect(response.status).toBe(status);

    const server = (await service.receiver.untilTrace(traceId, 1)).find(isServer);
    expect(server?.name).toBe(name);
    expect(server?.attributes).toMatchObject(
      name === 'HTTP'
        ? { 'http.request.method': '_OTHER', 'http.request.method_original': method }
        : { 'http.request.method': method },
    );
    expect(server?.attributes['http.route']).toBe(request.route);
    expect(server?.attributes['http.response.status_code']).toBe(status);
  },
);

test('a write that is 409 for its email is one statement, unless it has an external id', async () => {
  const email = `${randomUUID()}@example.com`;
  await service.call('POST', USERS, { email });
  const id = await service.createUser();
  const statementsOf = async (method: string, path: string, body: object, key = {}) => {
    const { traceId, headers } = traceOfCaller();
    const response = await service.call(method, path, body, { headers: { ...headers, ...key } });
    expect(response.status).toBe(409);
    const spans = await service.receiver.untilTrace(traceId, 2);
    return spans.filter((span) => !isServer(span)).map(({ name }) => name);
  };

  expect(await statementsOf('POST', USERS, { email })).toEqual(['INSERT users']);
  expect(await statementsOf('POST', USERS, { email }, { 'idempotency-key': randomUUID() })).toEqual([
    'INSERT users',
  ]);
  expect(await statementsOf('PATCH', USERS + id, { email, external_id: null })).toEqual(['UPDATE users']);
  expect(await statementsOf('POST', USERS, { email, external_id: email })).toEqual([
    'INSERT users',
    'SELECT users',
  ]);
});
