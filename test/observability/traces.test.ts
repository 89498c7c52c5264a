import { expect, test } from 'vitest';
import { isClient, isServer, startTracedService, traceOfCaller } from '../stage/built-service.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startProxy } from '../stage/proxy.ts';
import { USERS } from '../stage/responses.ts';

const service = forAllTests(() => startTracedService());

test('a request and its statement are spans of one trace, with stable semantic conventions', async () => {
  const { traceId, spanId, headers } = traceOfCaller();
  const init = { headers: { ...headers, 'user-agent': 'billing/1.0' } };
  await service.call('POST', USERS, { email: 'one-trace@example.com' }, init);
  const spans = await service.receiver.untilTrace(traceId, 2);
  const [server, statement] = [spans.find(isServer), spans.find(isClient)];

  expect(spans).toHaveLength(2);
  expect(server).toMatchObject({
    name: 'POST /api/v1/users/',
    parentSpanId: spanId,
    status: 'UNSET',
    resource: { 'service.name': 'user-management-service', 'telemetry.sdk.language': 'nodejs' },
  });
  expect(server?.attributes).toEqual({
    'http.request.method': 'POST',
    'http.response.status_code': 201,
    'http.route': '/api/v1/users/',
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(service.url).port),
    'url.path': '/api/v1/users/',
    'url.scheme': 'http',
    'user_agent.original': 'billing/1.0',
  });
  expect(statement).toMatchObject({ name: 'INSERT users', parentSpanId: server?.spanId, status: 'UNSET' });
  expect(statement?.attributes).toEqual({
    'db.collection.name': 'users',
    'db.namespace': service.database.name,
    'db.operation.name': 'INSERT',
    'db.query.summary': 'INSERT users',
    'db.query.text': expect.stringMatching(
      /^with clock as .*, given as .* insert into users \(.*\) select .* from clock, given /,
    ),
    'db.system.name': 'postgresql',
    'server.address': service.database.host,
    'server.port': service.database.port,
  });
});

test('each statement has the name of its operation and table, and no values', async () => {
  const { traceId, headers } = traceOfCaller();
  const id = await service.createUser();
  for (const [method, body] of [['GET'], ['PATCH', { full_name: 'Jane Doe' }], ['DELETE']] as const) {
    await service.call(method, USERS + id, body, { headers });
  }
  const statements = (await service.receiver.untilTrace(traceId, 6)).filter(isClient);

  expect(statements.map(({ name, attributes }) => [name, attributes['db.query.text']])).toEqual([
    ['SELECT users', expect.stringMatching(/^select .* from users where id = any\(\$1::uuid\[\]\)$/)],
    [
      'UPDATE users',
      expect.stringMatching(/^with clock as .*, given as .* update users set .* where users.id = given.id /),
    ],
    [
      'DELETE users',
      expect.stringMatching(
        /^with given as .* delete from users using \(select \* from given limit \(select count\(\*\) from given\)\) as given, clock where /,
      ),
    ],
  ]);
});

test('a failed statement has its SQLSTATE, and the refused request is not an error of the service', async () => {
  const { traceId, headers } = traceOfCaller();
  const email = 'twice@example.com';
  await service.call('POST', USERS, { email });
  await service.call('PATCH', USERS + (await service.createUser()), { email }, { headers });
  const spans = await service.receiver.untilTrace(traceId, 2);

  expect(spans.find(isClient)).toMatchObject({
    status: 'ERROR',
    attributes: { 'db.response.status_code': '23505', 'error.type': '23505' },
  });
  expect(spans.find(isServer)?.status).toBe('UNSET');
  expect(spans.find(isServer)?.attributes).not.toHaveProperty('error.type');
});

test('probes have no spans, nor do the migrations and the exporter', async () => {
  const { traceId, headers } = traceOfCaller();
  for (const path of ['/health', '/ready']) await fetch(service.url + path, { headers });
  await service.untilExported();
  const spans = service.receiver.spans();

  expect(spans.filter((span) => span.traceId === traceId)).toEqual([]);
  expect(spans.filter(({ attributes }) => attributes['server.port'] === service.receiver.port)).toEqual([]);
  const tables = spans.map(({ attributes }) => attributes['db.collection.name']);
  expect(tables).not.toContain('kysely_migration');
});

test('a statement without a connection has no SQLSTATE of PostgreSQL', async () => {
  const proxy = await forThisTest(startProxy, service.database);
  const cutOff = await forThisTest(startTracedService, { SVC_POSTGRES_PORT: String(proxy.port) });
  await proxy.refuse();
  const { traceId, headers } = traceOfCaller();
  const response = await cutOff.call('GET', USERS, undefined, { headers });
  const spans = await cutOff.receiver.untilTrace(traceId, 2);

  expect(response.status).toBe(503);
  expect(spans.find(isClient)).toMatchObject({ name: 'SELECT users', status: 'ERROR' });
  expect(spans.find(isClient)?.attributes).not.toHaveProperty('db.response.status_code');
  expect(spans.find(isServer)).toMatchObject({ status: 'ERROR', attributes: { 'error.type': '503' } });
});
