import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { devNull, networkInterfaces } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { startHost } from '../../host/host.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { startDevelopment } from '../stage/development.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { copyOfProject } from '../stage/project-copy.ts';
import { startSurroundings } from '../stage/service.ts';
import { until } from '../stage/until.ts';

const ROOT = join(import.meta.dirname, '../..');

const settingsIn = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/^ *(SVC_\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));

/** The lines to paste: from the first command to the end. */
const commandsIn = (banner: string) => /^curl .*^curl [^\n]*$/ms.exec(banner)?.[0] ?? '';

const CANNOT_LISTEN = /^The service cannot listen: .* See SVC_HOST, /m;

/** The responses to the commands. */
const RESPONSES = [200, 200, 200, 204].map((status) => `HTTP/1.1 ${status}`);

/** An interactive shell by the name of its program. */
const SHELLS = { sh: ['-i'], bash: ['--norc', '-i'], zsh: ['-f', '-i'] } as const;

const installed = Object.keys(SHELLS).filter((shell) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, shell))),
) as (keyof typeof SHELLS)[];

/** What an interactive shell prints for lines that it reads one after another, as from a terminal. */
const typedInto = (shell: keyof typeof SHELLS, lines: string): string =>
  execFileSync(shell, SHELLS[shell], {
    input: `${lines}\nexit\n`,
    env: { PATH: process.env.PATH, HOME: '/' },
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: 60_000,
  });

describe('npm run dev', { timeout: 180_000 }, () => {
  const development = forAllTests(async () => {
    const folder = copyOfProject();
    const started = await startDevelopment({}, folder);
    return { ...started, folder, banner: await started.untilBanner() };
  });

  test('listens on the loopback alone', () => {
    expect(development.printed()).toMatch(/ listening .*host="127\.0\.0\.1"/);
  });

  test('prints the service, its documentation, its database, and the settings for another service beside it', () => {
    const { banner } = development;
    const [, url, port] = /(http:\/\/127\.0\.0\.1:(\d+))$/m.exec(banner) ?? [];
    const [, issuer] = /SVC_OAUTH_ISSUER=(\S+)/.exec(banner) ?? [];
    const [, database] = /SVC_POSTGRES_PORT=(\d+)/.exec(banner) ?? [];

    expect(banner.split('\n').slice(0, banner.split('\n').indexOf('', 6))).toEqual([
      ...[`The service is ready on ${url}`, `  ${url}/docs`, `  ${url}/redoc`, `  ${url}/openapi.json`],
      ...[`  postgres://postgres@127.0.0.1:${database}/postgres`, ''],
      'Settings of another service beside it, such as the one of npm start (see .env.example)',
      ...['  SVC_HOST=127.0.0.1', `  SVC_PORT=${Number(port) + 1}`, '  SVC_POSTGRES_HOST=127.0.0.1'],
      ...[`  SVC_POSTGRES_PORT=${database}`, `  SVC_OAUTH_ISSUER=${issuer}`],
      ...[`  SVC_OAUTH_JWKS_URI=${issuer}/jwks`, '  SVC_OAUTH_AUDIENCE=user-management-service'],
      '  SVC_OAUTH_ROLES_CLAIM=aud',
    ]);
  });

  test('prints settings with which another service accepts the printed token', async () => {
    const settings = settingsIn(development.banner);
    const token = /^TOKEN=(.*)$/m.exec(development.banner)?.[1];
    const host = await startHost(readSettings({ ...settings, SVC_PORT: '0' }), {
      logTo: openSync(devNull, 'a'),
    });

    const response = await fetch(`${host.url}/api/v1/users/`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    await host.shutDown();

    expect(response.status).toBe(200);
  });

  test('names the one that runs in its folder already, and the command of a second service beside it', async () => {
    const second = await startDevelopment({}, development.folder);
    const { code } = await second.exited;
    const errors = second.errors();
    await second.stop({ keepsData: true });
    const [, url] = /^The service is ready on (.*)$/m.exec(development.banner) ?? [];
    const settings = Object.entries(settingsIn(development.banner)).map((setting) => setting.join('='));

    expect({ code, errors }).toEqual({
      code: 1,
      errors: `\nAnother "npm run dev" of this folder is running, at ${url}. Start a second service beside it:\n\n  ${settings.join(' ')} npm start\n`,
    });
  });

  test('prints the settings of .env.example, which has the preferred ports', () => {
    const command = blockOf('CONTRIBUTING.md', 'Commands').replace('npm start', 'env');
    const exported = execFileSync('sh', ['-c', command], { cwd: ROOT, encoding: 'utf8', env: {} });

    expect(settingsIn(exported)).toEqual({
      ...settingsIn(development.banner),
      SVC_PORT: '8001',
      SVC_POSTGRES_PORT: '54320',
      SVC_OAUTH_ISSUER: 'http://127.0.0.1:9000',
      SVC_OAUTH_JWKS_URI: 'http://127.0.0.1:9000/jwks',
    });
  });

  // On some systems a terminal in canonical mode accepts lines of at most 1024 bytes.
  test('prints no line that a terminal would cut off', () => {
    expect(Math.max(...development.banner.split('\n').map(({ length }) => length))).toBeLessThan(1024);
  });

  test.each(installed)('prints commands that %s can run pasted all at once', async (shell) => {
    const before = development.printed().length;
    const shown = typedInto(shell, commandsIn(development.banner));

    expect(shown.match(/HTTP\/1\.1 \d+/g), shown).toEqual(RESPONSES);
    const since = () => development.printed().slice(before);
    const log = await until('the deletion', () => /user_deleted.*\n/.test(since()) && since());
    const [, id] = /user_created .*user_id="([^"]+)"/.exec(log) ?? [];
    expect(log.match(/user_\w+ .*user_id="[^"]+"/g)).toEqual(
      ['user_created', 'user_updated', 'user_deleted'].map((event) =>
        expect.stringMatching(`^${event} .*user_id="${id}"$`),
      ),
    );
    expect(log).not.toMatch(/app_error/);
  });

  test('ends everything that it started, in reverse order, after Ctrl-C', async () => {
    development.interrupt();
    const { code } = await development.exited;

    const ended = development.printed().match(/^ {2}.* stopped$/gm);
    expect({ code, ended }).toEqual({
      code: 0,
      ended: ['  service stopped', '  PostgreSQL stopped', '  token issuer (for development only) stopped'],
    });
  });
});

describe('npm run dev with other settings', { timeout: 180_000 }, () => {
  const surroundings = forAllTests(() => startSurroundings());
  /** Starts it with the PostgreSQL of the tests, which starts no server of its own. */
  const start = ({ ...variables }: NodeJS.ProcessEnv) => {
    const { host, port, user, password, database } = surroundings.database;
    const postgres = { HOST: host, PORT: port, USER: user, PASSWORD: password, DB: database };
    for (const [name, value] of Object.entries(postgres)) variables[`SVC_POSTGRES_${name}`] ??= String(value);
    return forThisTest(startDevelopment, variables);
  };

  const hasIPv6 = Object.values(networkInterfaces()).some((list) =>
    list?.some(({ address }) => address === '::1'),
  );
  const addresses = [
    ['localhost', 'localhost'],
    ...(hasIPv6 ? [['::1', '[::1]'] as const, ['::', '[::1]'] as const] : []),
  ] as const;

  test.each(addresses)('listens on SVC_HOST=%s, and its commands reach it', async (host, written) => {
    const { untilBanner } = await start({ SVC_HOST: host });
    const banner = await untilBanner();
    const shown = typedInto('sh', commandsIn(banner));

    expect(banner).toMatch(
      new RegExp(`^The service is ready on http://${written.replace(/[.[\]]/g, '\\$&')}:\\d+$`, 'm'),
    );
    expect(shown.match(/HTTP\/1\.1 \d+/g)).toEqual(RESPONSES);
  });

  test('prints once per cause what it waits for while its PostgreSQL is unavailable', async () => {
    const port = await freePort();
    const { printed } = await start({ SVC_POSTGRES_HOST: '127.0.0.1', SVC_POSTGRES_PORT: String(port) });
    const causes = () => printed().match(/(?<=^ {2})waiting for .*(?=\n)/gm) ?? [];
    await until('what it waits for', () => causes().length > 0);
    await using _server = await startSilentServer(port);
    await until('another cause', () => causes().length > 1);

    const place = `waiting for PostgreSQL at 127.0.0.1:${port}: not ready:`;
    expect(causes()).toEqual([
      `${place} connect ECONNREFUSED 127.0.0.1:${port}`,
      `${place} PostgreSQL did not answer in time`,
    ]);
    expect(printed()).not.toMatch(/app_error/);
  });

  test.each([
    ['an address of another machine', { SVC_HOST: '192.0.2.1' }, CANNOT_LISTEN],
    ['a name of no machine', { SVC_HOST: 'nowhere.invalid' }, CANNOT_LISTEN],
    ['an invalid value', { SVC_LOG_LEVEL: 'loud' }, /SVC_LOG_LEVEL/],
  ])('ends with exit code 1 and names the setting for %s', async (_case, variables, message) => {
    const development = await start(variables);

    expect(await development.exited).toEqual({ code: 1, signal: null });
    expect(development.errors()).toMatch(message);
    expect(development.errors()).not.toMatch(/\n +at /);
  });

  test('prints a free port if its own is taken', async () => {
    const port = await freePort();
    await using _server = await startSilentServer(port, '0.0.0.0');
    const development = await start({ SVC_PORT: String(port) });

    expect(await development.exited).toEqual({ code: 1, signal: null });
    expect(development.errors()).toMatch(
      new RegExp(
        `^Port ${port} is taken by another program\\. Choose another one:\n\n  SVC_PORT=\\d+ npm run dev$`,
        'm',
      ),
    );
  });
});

/** A server that accepts connections and sends nothing. */
async function startSilentServer(port: number, host = '127.0.0.1') {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket)).listen(port, host);
  await once(server, 'listening');
  return {
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
