import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { libpqEnvironment } from '../stage/libpq-environment.ts';
import { isListening, listen } from '../stage/listening.ts';
import { createDatabase } from '../stage/postgres.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { repeat, until } from '../stage/until.ts';

const main = join(import.meta.dirname, '../../host/main.ts');

const good = forAllTests(async () => {
  const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  const stop = () => Promise.all([issuer.stop(), database.drop()]);
  return { environment: environmentOf(database, issuer), stop };
});

/** Starts the real process with exactly these variables. */
function start(variables: Variables) {
  const child = spawn(process.execPath, [main], { env: { PATH: process.env.PATH, ...variables } });
  const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  return { child, ended: ended.then(([end, stdout, stderr]) => ({ end, stdout, stderr })) };
}

const answered = (port: number) => fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);

describe('an invalid or missing setting ends the process', () => {
  test('with exit code 1 and one message on standard error, before the port opens', async () => {
    const port = await freePort();
    const password = 'hunter2-hunter2';
    const { ended } = start({
      ...good.environment,
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
    const { end, stdout, stderr } = await ended;
    await stopWatching();

    expect({ end, wasOpen, stdout }).toEqual({ end: [1, null], wasOpen: false, stdout: '' });
    const named = stderr.match(/SVC_\w+/g) ?? [];
    expect(named.sort()).toEqual(['SVC_LOG_LEVEL', 'SVC_OAUTH_AUDIENCE', 'SVC_POSTGRES_PORT']);
    expect(stderr).not.toMatch(/hunter2|loud|\bat .*:\d+:\d+/);
  });

  test('without any setting, and names the required settings', async () => {
    const { end, stderr } = await start({}).ended;

    expect(end).toEqual([1, null]);
    expect((stderr.match(/SVC_\w+/g) ?? []).sort()).toEqual([
      'SVC_OAUTH_AUDIENCE',
      'SVC_OAUTH_ISSUER',
      'SVC_OAUTH_JWKS_URI',
    ]);
  });
});

describe('with valid settings', () => {
  test('the port opens, an unknown SVC_ name is a warning, and the exit code after SIGTERM is 0', async () => {
    const port = await freePort();
    const { child, ended } = start({ ...good.environment, SVC_PORT: String(port), SVC_LOGLEVEL: 'debug' });
    await until('the port is open', () => isListening(port));
    await until('/ready is 200', async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
    child.kill('SIGTERM');

    const { end, stdout, stderr } = await ended;
    expect(end).toEqual([0, null]);
    const events = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    expect(events.filter(({ level, event }) => level === 'warning' && event !== 'app_error')).toEqual([
      { timestamp: expect.any(String), level: 'warning', event: 'unknown_setting', name: 'SVC_LOGLEVEL' },
    ]);
    expect(stderr).toBe('');
  });

  // pg reads options from the environment if it has none, which is the case with a pooler.
  test.each([['none'], ['transaction']])(
    'the variables of libpq have no effect, with SVC_POSTGRES_POOLER %s',
    async (SVC_POSTGRES_POOLER) => {
      const port = await freePort();
      const environment = { ...good.environment, ...libpqEnvironment, SVC_POSTGRES_POOLER };
      const { child, ended } = start({ ...environment, SVC_PORT: String(port) });
      const built = await startBuiltHost(environment);
      await until('/ready is 200', async () => (await answered(port))?.ok);
      await built.untilEvent('database_migrated');
      child.kill('SIGTERM');
      const failed = built.events('migration_failed');
      await built.remove();

      const stdout = expect.not.stringContaining('migration_failed');
      expect(await ended).toEqual({ end: [0, null], stdout, stderr: '' });
      expect(failed).toEqual([]);
    },
  );

  test.each([['999.1.1.1'], ['203.0.113.5']])(
    'an address of another machine ends the process with exit code 1: %s',
    async (SVC_HOST) => {
      const { end, stderr } = await start({ ...good.environment, SVC_HOST }).ended;

      expect(end).toEqual([1, null]);
      expect(stderr).toMatch(/^The service cannot listen: .*SVC_HOST.*\n$/);
      expect(stderr).not.toContain(SVC_HOST);
    },
  );

  test('a port that is taken ends the process with exit code 1', async () => {
    await using taken = createServer();
    const { port } = await listen(taken);
    const { end, stderr } = await start({ ...good.environment, SVC_PORT: String(port) }).ended;

    expect(end).toEqual([1, null]);
    expect(stderr).toContain('SVC_PORT');
  });
});
