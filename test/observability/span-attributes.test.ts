import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import {
  isClient,
  isServer,
  startBuiltHost,
  startTracedService,
  traceOfCaller,
} from '../stage/built-service.ts';
import { lastResponse, requestText } from '../stage/connection.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { USERS } from '../stage/responses.ts';
import { until } from '../stage/until.ts';

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

test.each([
  ['[::1]:8000', '::1', 8000],
  ['api.example.com:8443', 'api.example.com', 8443],
])('server.address is that of the Host header (%s)', async (host, address, port) => {
  const { traceId, headers } = traceOfCaller();
  const fields = { ...headers, Host: host, Connection: 'close' };
  await lastResponse(service.url, requestText('GET /nowhere', fields));
  const [span] = await service.receiver.untilTrace(traceId, 1);

  expect(span?.attributes['server.address']).toBe(address);
  expect(span?.attributes['server.port']).toBe(port);
});

test('the span of a key fetch has neither the query nor personal data of the path', async () => {
  const { origin } = new URL(service.issuer.jwksUri);
  const address = `${origin}/of/jane.doe%2540example.com/keys?key=secret`;
  await forThisTest(startBuiltHost, { ...service.environment, SVC_OAUTH_JWKS_URI: address });
  const span = await until('the span', () =>
    service.receiver.spans().find(({ attributes }) => String(attributes['url.path']).startsWith('/of/')),
  );

  expect(span.attributes).toMatchObject({
    'url.full': `${origin}/of/***/keys`,
    'url.path': '/of/***/keys',
  });
  expect(JSON.stringify(span.attributes)).not.toMatch(/jane|secret/);
});

test('the address in the span of a statement is that of the current host, if there are several', async () => {
  const server = inject('postgres');
  const proxy = await forThisTest(startProxy, server);
  const service = await forThisTest(startTracedService, addressOf(proxy, server));
  const portInUse = async () => {
    const traceId = await until('a read is 200', async () => {
      const { traceId, headers } = traceOfCaller();
      const { status } = await service.call('GET', USERS, undefined, { headers });
      return status === 200 && traceId;
    });
    const spans = await service.receiver.untilTrace(traceId, 2);
    return spans.find(isClient)?.attributes['server.port'];
  };
  const first = await portInUse();
  await proxy.refuse();

  expect(first).toBe(proxy.port);
  await until('the address of the other host', async () => (await portInUse()) === server.port);
});
