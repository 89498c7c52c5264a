import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startBuiltHost } from '../stage/built-service.ts';
import { untilReady } from '../stage/caller.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { libpqEnvironment } from '../stage/libpq-environment.ts';
import { isListening, listen } from '../stage/listening.ts';
import { startSurroundings } from '../stage/service.ts';
import { repeat } from '../stage/until.ts';

const good = forAllTests(() => startSurroundings());

const start = (variables: Variables) => forThisTest(startBuiltHost, { ...good.environment, ...variables });

test('an invalid or missing setting ends the process with exit code 1 and one message on standard error, before the port opens', async () => {
  const port = await freePort();
  const password = 'hunter2-hunter2';
  const host = await start({
    SVC_PORT: String(port),
    SVC_POSTGRES_PASSWORD: password,
    SVC_POSTGRES_PORT: password,
    SVC_LOG_LEVEL: 'loud',
    SVC_OAUTH_AUDIENCE: '',
  });
  let wasOpen = false;
  const stopWatching = repeat(async () => {
    wasOpen ||= await isListening(port);
    await sleep(5);
  });
  const end = await host.exited;
  await stopWatching();

  expect(end).toEqual({ code: 1, signal: null });
  expect({ wasOpen, printed: host.printed() }).toEqual({ wasOpen: false, printed: '' });
  const named = host.errors().match(/SVC_\w+/g) ?? [];
  expect(named.sort()).toEqual(['SVC_LOG_LEVEL', 'SVC_OAUTH_AUDIENCE', 'SVC_POSTGRES_PORT']);
  expect(host.errors()).not.toMatch(/hunter2|loud|\bat .*:\d+:\d+/);
});

test('with valid settings the port opens, an unknown SVC_ name is a warning, and the exit code after SIGTERM is 0', async () => {
  const port = await freePort();
  const host = await start({ SVC_PORT: String(port), SVC_LOGLEVEL: 'debug' });
  await untilReady(`http://127.0.0.1:${port}`);
  host.signal('SIGTERM');

  expect(await host.exited).toEqual({ code: 0, signal: null });
  const warnings = host.events().filter(({ level, event }) => level === 'warning' && event !== 'app_error');
  expect(warnings).toEqual([
    { timestamp: expect.any(String), level: 'warning', event: 'unknown_setting', name: 'SVC_LOGLEVEL' },
  ]);
  expect(host.errors()).toBe('');
});

// pg reads options from the environment if it has none, which is the case with a pooler.
test.each(['none', 'transaction'])(
  'the variables of libpq have no effect, with SVC_POSTGRES_POOLER %s',
  async (SVC_POSTGRES_POOLER) => {
    const host = await start({ ...libpqEnvironment, SVC_POSTGRES_POOLER });
    await untilReady(await host.untilListening());
    await host.untilEvent('database_migrated');

    expect(host.events('migration_failed')).toEqual([]);
    expect(host.errors()).toBe('');
  },
);

test.each(['999.1.1.1', '203.0.113.5'])(
  'an address of another machine ends the process with exit code 1: %s',
  async (SVC_HOST) => {
    const host = await start({ SVC_HOST });

    expect(await host.exited).toEqual({ code: 1, signal: null });
    expect(host.errors()).toMatch(/^The service cannot listen: .*SVC_HOST.*\n$/);
    expect(host.errors()).not.toContain(SVC_HOST);
  },
);

test('a port that is taken ends the process with exit code 1', async () => {
  await using taken = createServer();
  const { port } = await listen(taken);
  const host = await start({ SVC_PORT: String(port) });

  expect(await host.exited).toEqual({ code: 1, signal: null });
  expect(host.errors()).toContain('SVC_PORT');
});
