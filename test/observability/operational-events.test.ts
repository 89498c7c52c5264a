import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Variables } from '../../lib/settings.ts';
import { TIMESTAMP } from '../stage/answers.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { startBuiltService } from '../stage/built-service.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

/** Starts the service for one test. */
async function start(variables: Variables = {}) {
  const service = await startService(variables);
  onTestFinished(() => service.stop());
  return service;
}

const common = { timestamp: expect.stringMatching(TIMESTAMP) };

test('a start is listening and database_migrated, with exactly their fields', async () => {
  const service = await start();

  const events = (await service.events()).filter(({ path }) => path !== '/ready');
  expect(events).toEqual([
    { ...common, level: 'info', event: 'listening', host: '127.0.0.1', port: service.host.port },
    { ...common, level: 'info', event: 'database_migrated' },
  ]);
});

test('a setting that nobody knows is an unknown_setting, named and without its value', async () => {
  const service = await start({ SVC_PROT: '8000-by-mistake' });

  const [first] = await service.events();
  expect(first).toEqual({ ...common, level: 'warning', event: 'unknown_setting', name: 'SVC_PROT' });
});

test('keys that cannot be fetched are one jwks_refresh_failed with the cause, not one for each try', async () => {
  const provider = await startIssuer();
  provider.answer((_, response) => response.writeHead(500).end());
  const service = await start({ SVC_OAUTH_JWKS_URI: provider.jwksUri, SVC_LOG_LEVEL: 'debug' });
  const refreshes = async () =>
    (await service.events()).filter(({ event }) => String(event).startsWith('jwks_refresh'));
  const [first, second] = await until('two tries', async () => {
    const events = await refreshes();
    return events.length >= 2 && events;
  });
  await provider.stop();

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

test('a database that is away at the start is one migration_failed with the cause, not one for each try', async () => {
  const service = await start();
  const nowhere = { SVC_POSTGRES_HOST: '127.0.0.1', SVC_POSTGRES_PORT: String(await freePort()) };
  const host = await startBuiltHost({ ...service.environment, ...nowhere });
  onTestFinished(host.remove);
  await host.untilEvent('migration_failed');
  await sleep(1500);

  expect(host.events()).toEqual([
    { ...common, level: 'info', event: 'listening', host: '127.0.0.1', port: expect.any(Number) },
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
});

test('nothing is printed on standard error, however often /ready is asked', async () => {
  const built = await startBuiltService();
  onTestFinished(built.remove);
  for (let asked = 0; asked < 30; asked += 1) expect((await fetch(`${built.url}/ready`)).status).toBe(200);
  built.signal('SIGTERM');
  await built.exited;

  expect(built.errors()).toBe('');
});
