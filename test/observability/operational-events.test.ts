import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { FailureLog } from '../../lib/observability/failure-log.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { startBuiltHost, startBuiltService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { listen } from '../stage/listening.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { TIMESTAMP } from '../stage/responses.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const start = (variables: Variables = {}) => forThisTest(startService, variables);

const { version } = packageJson;

const servedToPrometheus = (port: number) => ({
  SVC_OTEL_ENABLED: 'true',
  OTEL_TRACES_EXPORTER: 'none',
  OTEL_METRICS_EXPORTER: 'prometheus',
  OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
});

const common = { timestamp: expect.stringMatching(TIMESTAMP) };

test('a failing key fetch is one jwks_refresh_failed with the cause, not one per attempt', async () => {
  const provider = await forThisTest(startIssuer);
  provider.answer((_, response) => response.writeHead(500).end());
  const service = await start({ SVC_OAUTH_JWKS_URI: provider.jwksUri, SVC_LOG_LEVEL: 'debug' });
  const refreshes = async () =>
    (await service.events()).filter(({ event }) => String(event).startsWith('jwks_refresh'));
  const [first, second] = await until('two tries', async () => {
    const events = await refreshes();
    return events.length >= 2 && events;
  });

  expect(first).toEqual({
    ...common,
    level: 'warning',
    event: 'jwks_refresh_failed',
    cause: { name: 'Error', message: 'the key server answered 500', stack: expect.stringContaining('at ') },
  });
  expect(second).toEqual({
    ...common,
    level: 'debug',
    event: 'jwks_refreshed',
    outcome: 'failed',
    failures: 2,
  });
});

test('a key fetch that fails for another reason is another jwks_refresh_failed', async () => {
  const provider = await forThisTest(startIssuer);
  provider.answer((_, response) => response.writeHead(500).end());
  const service = await start({ SVC_OAUTH_JWKS_URI: provider.jwksUri });
  const causes = async () =>
    (await service.events())
      .filter(({ event }) => event === 'jwks_refresh_failed')
      .map(({ cause }) => (cause as Error).message);
  await until('the first failure', async () => (await causes()).length === 1);
  provider.answer((_, response) => response.end('{'));
  await until('the second failure', async () => (await causes()).length === 2);

  expect(await causes()).toEqual(['the key server answered 500', "the key server's response is not JSON"]);
});

test('the same failure is logged again after a success', () => {
  const logged: string[] = [];
  const ignore = () => {};
  const log = { debug: ignore, info: ignore, warning: (event: string) => logged.push(event), error: ignore };
  const failures = new FailureLog(log, 'key_fetch_failed');
  const logs = [new Error('one'), new Error('one'), undefined, new Error('one')].map((failure) =>
    failure ? failures.onFailure(failure) : failures.onSuccess(),
  );

  expect(logs).toEqual([true, false, undefined, true]);
  expect(logged).toHaveLength(2);
});

test('a schema that a later version has migrated is not a failure: the instance serves with it', async () => {
  const { database, issuer } = await start();
  await database.query("INSERT INTO kysely_migration VALUES ('9999-later', '2030-01-01T00:00:00.000Z')");
  const older = await forThisTest(startService, {}, { database, issuer });
  const created = await older.call('POST', '/api/v1/users/', { email: 'older@example.com' });
  const ofMigrations = await until('the migrations are looked at', async () => {
    const events = (await older.events()).filter(({ event }) => String(event).includes('migrat'));
    return events.length > 0 && events;
  });

  expect(created.status).toBe(201);
  expect(ofMigrations).toEqual([{ ...common, level: 'info', event: 'database_migrated' }]);
});

test('migrations that fail at the start are one migration_failed per reason with the cause, not one per attempt', async () => {
  const { database, admin } = await emptyDatabase();
  const role = `role_${database.name}`;
  await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  // PostgreSQL 14 lets every role create tables.
  await admin.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
  onTestFinished(async () => void (await admin.query(`DROP ROLE ${role}`)));
  const issuer = await forThisTest(startIssuer);
  const proxy = await forThisTest(startProxy, database);
  await proxy.refuse();
  const host = await forThisTest(startBuiltHost, {
    ...environmentOf(database, issuer),
    ...addressOf(proxy),
    SVC_POSTGRES_USER: role,
    SVC_POSTGRES_PASSWORD: 'secret',
  });
  await host.untilEvent('migration_failed');
  await sleep(1500);
  const whileUnavailable = host.events();
  await proxy.pass();
  const [, second] = await until('the second cause', () => {
    const failures = host.events('migration_failed');
    return failures.length === 2 && failures;
  });

  expect(whileUnavailable).toEqual([
    { ...common, level: 'info', event: 'listening', version, host: '127.0.0.1', port: expect.any(Number) },
    {
      ...common,
      level: 'warning',
      event: 'migration_failed',
      cause: {
        name: 'Error',
        code: 'ECONNREFUSED',
        message: expect.stringContaining('ECONNREFUSED'),
        stack: expect.stringContaining('at '),
      },
    },
  ]);
  expect(second?.cause).toMatchObject({ message: 'permission denied for schema public' });
});

test('a used port for Prometheus is one metrics_not_served with the cause, and the service serves', async () => {
  await using taken = createServer();
  const { port } = await listen(taken);
  const built = await forThisTest(startBuiltService, servedToPrometheus(port));

  expect(await built.untilEvent('metrics_not_served')).toEqual({
    ...common,
    level: 'error',
    event: 'metrics_not_served',
    cause: {
      name: 'Error',
      code: 'EADDRINUSE',
      message: expect.stringContaining(`:${port}`),
      stack: expect.stringContaining('at '),
    },
  });
  expect((await fetch(`${built.url}/ready`)).status).toBe(200);
});

test('Prometheus can read the metrics at every address of the service, with GET and HEAD alone', async () => {
  const [own] = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal);
  const address = own?.address ?? '127.0.0.2';
  const port = await freePort();
  const built = await forThisTest(startBuiltService, { SVC_HOST: '0.0.0.0', ...servedToPrometheus(port) });

  for (const [at, path] of [
    [new URL(built.url).port, '/health'],
    [port, '/metrics'],
  ] as const)
    expect((await fetch(`http://${address}:${at}${path}`)).status).toBe(200);
  const ask = async (method: string, path = '/metrics') => {
    const response = await fetch(`http://${address}:${port}${path}`, { method });
    return [response.status, response.headers.get('allow'), (await response.text()).includes('# TYPE')];
  };
  expect(await ask('GET', '/metrics?name=a')).toEqual([200, null, true]);
  expect(await ask('HEAD')).toEqual([200, null, false]);
  expect(await ask('GET', '/')).toEqual([404, null, false]);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    expect(await ask(method)).toEqual([405, 'GET, HEAD', false]);
});

test('standard error stays empty after any number of requests to /ready', async () => {
  const built = await forThisTest(startBuiltService);
  for (let asked = 0; asked < 30; asked += 1) expect((await fetch(`${built.url}/ready`)).status).toBe(200);
  built.signal('SIGTERM');
  await built.exited;

  expect(built.errors()).toBe('');
});
