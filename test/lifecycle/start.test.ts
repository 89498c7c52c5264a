import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { libpqEnvironment } from '../stage/libpq-environment.ts';
import { isListening } from '../stage/listening.ts';
import { createDatabase } from '../stage/postgres.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const main = join(import.meta.dirname, '../../host/main.ts');

let database: Awaited<ReturnType<typeof createDatabase>>;
let issuer: Awaited<ReturnType<typeof startIssuer>>;

beforeAll(async () => {
  [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  return () => Promise.all([issuer.stop(), database.drop()]);
});

/** Starts the real process with exactly these variables. */
function start(variables: Variables) {
  const child = spawn(process.execPath, [main], { env: { PATH: process.env.PATH, ...variables } });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk;
  });
  return { child, output, ended: once(child, 'close') as Promise<[number | null, string | null]> };
}

const answered = (port: number) => fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);

const good = () => environmentOf(database, issuer);

describe('an invalid or missing setting ends the process', () => {
  test('with exit code 1 and one message on standard error, before the port opens', async () => {
    const port = await freePort();
    const password = 'hunter2-hunter2';
    const { output, ended } = start({
      ...good(),
      SVC_PORT: String(port),
      SVC_POSTGRES_PASSWORD: password,
      SVC_POSTGRES_PORT: password,
      SVC_LOG_LEVEL: 'loud',
      SVC_OAUTH_AUDIENCE: '',
    });
    let wasOpen = false;
    let isRunning = true;
    const watch = (async () => {
      while (isRunning) {
        wasOpen ||= await isListening(port);
        await sleep(5);
      }
    })();
    const end = await ended;
    isRunning = false;
    await watch;

    expect({ end, wasOpen, stdout: output.stdout }).toEqual({ end: [1, null], wasOpen: false, stdout: '' });
    const named = output.stderr.match(/SVC_\w+/g) ?? [];
    expect(named.sort()).toEqual(['SVC_LOG_LEVEL', 'SVC_OAUTH_AUDIENCE', 'SVC_POSTGRES_PORT']);
    expect(output.stderr).not.toMatch(/hunter2|loud|\bat .*:\d+:\d+/);
  });

  test('without any setting, and names the required settings', async () => {
    const { output, ended } = start({});

    expect(await ended).toEqual([1, null]);
    expect((output.stderr.match(/SVC_\w+/g) ?? []).sort()).toEqual([
      'SVC_OAUTH_AUDIENCE',
      'SVC_OAUTH_ISSUER',
      'SVC_OAUTH_JWKS_URI',
    ]);
  });
});

describe('with valid settings', () => {
  test('the port opens, an unknown SVC_ name is a warning, and the exit code after SIGTERM is 0', async () => {
    const port = await freePort();
    const { child, output, ended } = start({ ...good(), SVC_PORT: String(port), SVC_LOGLEVEL: 'debug' });
    await until('the port is open', () => isListening(port));
    await until('/ready is 200', async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
    child.kill('SIGTERM');

    expect(await ended).toEqual([0, null]);
    const events = output.stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    expect(events.filter(({ level, event }) => level === 'warning' && event !== 'app_error')).toEqual([
      { timestamp: expect.any(String), level: 'warning', event: 'unknown_setting', name: 'SVC_LOGLEVEL' },
    ]);
    expect(output.stderr).toBe('');
  });

  // pg reads options from the environment if it has none, which is the case with a pooler.
  test.each([['none'], ['transaction']])(
    'the variables of libpq have no effect, with SVC_POSTGRES_POOLER %s',
    async (SVC_POSTGRES_POOLER) => {
      const port = await freePort();
      const environment = { ...good(), ...libpqEnvironment, SVC_POSTGRES_POOLER };
      const { child, output, ended } = start({ ...environment, SVC_PORT: String(port) });
      const built = await startBuiltHost(environment);
      await until('/ready is 200', async () => (await answered(port))?.ok);
      await built.untilEvent('database_migrated');
      child.kill('SIGTERM');
      const failed = built.events('migration_failed');
      await built.remove();

      expect(await ended).toEqual([0, null]);
      expect(output).toEqual({ stdout: expect.not.stringContaining('migration_failed'), stderr: '' });
      expect(failed).toEqual([]);
    },
  );

  test.each([['999.1.1.1'], ['203.0.113.5']])(
    'an address of another machine ends the process with exit code 1: %s',
    async (SVC_HOST) => {
      const { output, ended } = start({ ...good(), SVC_HOST });

      expect(await ended).toEqual([1, null]);
      expect(output.stderr).toMatch(/^The service cannot listen: .*SVC_HOST.*\n$/);
      expect(output.stderr).not.toContain(SVC_HOST);
    },
  );

  test('a port that is taken ends the process with exit code 1', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const { output, ended } = start({ ...good(), SVC_PORT: String(port) });
    const end = await ended;
    taken.close();

    expect(end).toEqual([1, null]);
    expect(output.stderr).toContain('SVC_PORT');
  });
});
