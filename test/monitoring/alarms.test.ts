import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Patience } from '../../infra/observability/alarms.ts';
import { alertsYaml } from '../../infra/observability/alerts-yaml.ts';
import { dashboard } from '../../infra/observability/dashboard.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { type BuiltService, startBuiltHost, startBuiltService } from '../stage/built-service.ts';
import { untilReady } from '../stage/caller.ts';
import { CHANGES } from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { hold, holdUsers } from '../stage/locks.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { USERS } from '../stage/responses.ts';
import { repeat, until } from '../stage/until.ts';
import { startPrometheus } from './prometheus.ts';

/** So that each alarm fires and clears within seconds. */
const SHORT: Patience = { window: '6s', hold: '1s', down: '1s', keysAge: 8, unnumberedAge: 1, drainAge: 1 };

let service: BuiltService;
let prometheus: Awaited<ReturnType<typeof startPrometheus>>;
let stopReading: () => Promise<void>;

/** The built service, which callers read, scraped by a Prometheus in which no alarm fires. */
async function start(variables: Variables = {}) {
  const port = await freePort();
  service = await forThisTest(startBuiltService, {
    SVC_OTEL_ENABLED: 'true',
    OTEL_TRACES_EXPORTER: 'none',
    OTEL_METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
    SVC_POSTGRES_POOL_SIZE: '2',
    ...variables,
  });
  prometheus = await forThisTest(startPrometheus, port, alertsYaml(SHORT));
  stopReading = repeat(read);
  onTestFinished(stopReading);
  await untilSeries('up == 1');
  expect(await prometheus.firing()).toEqual([]);
}

/** Sends a read, and does not wait for its response. */
async function read(): Promise<void> {
  service.call('GET', `${USERS}?limit=1`).catch(() => {});
  await sleep(100);
}

const untilSeries = (query: string) =>
  until(query, async () => (await prometheus.query(query)).length > 0, { seconds: 20 });
const untilFiring = (...alarms: readonly string[]) => Promise.all(alarms.map(prometheus.untilFiring));
const untilClear = (...alarms: readonly string[]) => Promise.all(alarms.map(prometheus.untilClear));

describe('an alarm fires while its fault lasts, and clears after it:', () => {
  test('an instance is down', async () => {
    await start();
    service.signal('SIGKILL');
    await untilFiring('UserManagementInstanceDown');

    const again = await forThisTest(startBuiltHost, service.environment);
    await untilReady(await again.untilListening());
    await untilClear('UserManagementInstanceDown');
  });

  test('PostgreSQL is unavailable', async () => {
    const proxy = await forThisTest(startProxy, inject('postgres'));
    await start(addressOf(proxy));
    await proxy.refuse();
    await untilFiring('UserManagementRequestsFail');

    await proxy.pass();
    await untilClear('UserManagementRequestsFail');
  });

  test('statements wait for a lock', async () => {
    await start();
    const table = await holdUsers(service.database);
    await untilFiring('UserManagementConnectionsExhausted', 'UserManagementSlow');

    await table.release();
    await untilClear('UserManagementConnectionsExhausted', 'UserManagementSlow');
  });

  test('the key server is unavailable', async () => {
    await start({ SVC_OAUTH_JWKS_REFRESH: '5' });
    service.issuer.answer((_request, response) => void response.writeHead(500).end());
    await untilFiring('UserManagementKeysStale');

    service.issuer.answerNormally();
    await untilClear('UserManagementKeysStale');
  });

  test('the feed cannot be numbered', async () => {
    await start();
    const head = await hold(service.database, 'SELECT FROM user_changes_head FOR UPDATE');
    await service.call('POST', USERS, { email: 'unnumbered@example.com' });
    const read = service.call('GET', CHANGES);
    await untilFiring('UserManagementChangesUnnumbered');
    await head.release();
    await read;

    expect((await service.call('GET', CHANGES)).status).toBe(200);
    await untilClear('UserManagementChangesUnnumbered');
  });

  test('a drain ends with requests in flight', async () => {
    await start({ SVC_SHUTDOWN_DRAIN_TIMEOUT: '30', SVC_POSTGRES_STATEMENT_TIMEOUT: '25' });
    await stopReading();
    const table = await holdUsers(service.database);
    const held = service.call('GET', USERS);
    await untilSeries('http_server_active_requests > 0');
    service.signal('SIGTERM');
    await untilFiring('UserManagementDrainTimeout');

    await table.release();
    expect((await held).status).toBe(200);
    expect(await service.exited).toEqual({ code: 0, signal: null });
    await untilClear('UserManagementDrainTimeout');
  });
});

test('every metric of alarms and dashboard exists, and every query is valid', async () => {
  await start();
  const panels = JSON.stringify(dashboard());
  const queries = [...panels.matchAll(/"expr":("(?:[^"\\]|\\.)*")/g)].map(([, expr = '']) =>
    String(JSON.parse(expr))
      .replaceAll('$__rate_interval', SHORT.window)
      .replaceAll(/\$(job|instance)\b/g, '.*'),
  );
  const named = new Set(
    [...`${queries.join()} ${alertsYaml(SHORT)}`.matchAll(/\b[a-z][a-z_\d]+(?=\{)/g)].map(([name]) => name),
  );
  await service.call('GET', `${USERS}x`);
  await untilSeries('count(http_server_request_duration_count) > 1');

  expect(queries.length).toBeGreaterThan(20);
  for (const query of queries) await prometheus.query(query);
  const missing = [];
  for (const name of named) if ((await prometheus.query(name)).length === 0) missing.push(name);
  expect(missing).toEqual([]);
});
