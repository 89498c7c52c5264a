import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/built-service.ts';
import { type DisposablePostgres, startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { startProxy } from '../stage/proxy.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { linesOf, openFiles, runCommand, startCommand, usersNamed } from './command.ts';

/** `KILLS=50` is the long form. */
const KILLS = Number(process.env.KILLS ?? 20);

/** Users in a file. While a file is imported, something is killed several times. */
const USERS = 5000;

let postgres: DisposablePostgres;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let host: Awaited<ReturnType<typeof startBuiltHost>>;
let variables: NodeJS.ProcessEnv;
const files = openFiles();

/** The service has another port after each start. The command uses the port of the proxy. */
async function startService(): Promise<void> {
  host = await startBuiltHost(environmentOf({ ...postgres, drop: async () => [] }, issuer));
  const url = new URL(await host.untilListening());
  await untilReady(url.origin);
  const target = { host: url.hostname, port: Number(url.port) };
  if (proxy) proxy.leadTo(target);
  else proxy = await startProxy(target);
}

beforeAll(async () => {
  [postgres, issuer] = await Promise.all([startDisposablePostgres(), startIssuer()]);
  await startService();
  variables = {
    USERS_URL: `http://127.0.0.1:${proxy.port}`,
    USERS_TOKEN: await issuer.sign({ exp: Math.floor(Date.now() / 1000) + 3600 }),
  };
});

afterAll(async () => {
  files.remove();
  await host.remove();
  await Promise.all([postgres.stop(), issuer.stop(), proxy.stop()]);
});

/** Each line of a file that is not a user, and the last line, which repeats the first. */
const bad = ['{"email":"nobody"}\n', 'no JSON\n'].join('');

test(`after ${KILLS} kills of the command, the service and PostgreSQL no user is lost, and none occurs twice`, {
  timeout: KILLS * 20_000,
}, async () => {
  await runCommand(['export', '--cursor', files.pathOf('beginning')], variables);
  const kills = { command: 0, service: 0, postgres: 0 };
  const names: string[] = [];
  const start = () => startCommand(['import', files.pathOf(names.at(-1) ?? '')], variables);
  const startNext = () => {
    const name = `file${names.length + 1}`;
    const users = usersNamed(name, USERS);
    files.write(name, bad + users + users.slice(0, users.indexOf('\n') + 1));
    names.push(name);
    return start();
  };

  let running = startNext();
  for (let count = 0; count < KILLS; count += 1) {
    await sleep(randomInt(20, 400));
    if (!running.isRunning()) {
      const { code, stderr } = await running.ended;
      expect([code, stderr.split('\n').at(-2)]).toEqual([3, `created ${USERS}, exists 1, refused 2`]);
      running = startNext();
      await sleep(randomInt(150, 400));
    }
    const victim = (['command', 'service', 'postgres'] as const)[count % 3] ?? 'command';
    kills[victim] += 1;
    if (victim === 'command') {
      running.signal('SIGKILL');
      await running.ended;
      running = start();
    } else if (victim === 'service') {
      host.signal('SIGKILL');
      await host.remove();
      await startService();
    } else {
      await postgres.kill();
      await postgres.start();
    }
  }
  await running.ended;

  // Each file once more. Its lines have the same results, after any interruption.
  for (const name of names) {
    const { code, stderr } = await runCommand(['import', files.pathOf(name)], variables);
    expect([code, stderr.split('\n').at(-2)]).toEqual([3, `created ${USERS}, exists 1, refused 2`]);
  }
  const exported = await runCommand(['export'], variables);
  const followed = await runCommand(['follow', '--once', '--cursor', files.pathOf('beginning')], variables);
  const stored = linesOf(exported.stdout).map(({ email }) => String(email));
  const wanted = names.flatMap((name) => linesOf(usersNamed(name, USERS)).map(({ email }) => String(email)));
  const rows = await postgres.query('SELECT count(*)::int AS users FROM users', postgres.database);
  const changes = linesOf(followed.stdout);

  expect(stored.sort()).toEqual(wanted.sort());
  expect(rows).toEqual([{ users: wanted.length }]);
  expect(changes.length).toBe(wanted.length);
  expect(new Set(changes.map(({ type }) => type))).toEqual(new Set(['user.created']));
  expect(new Set(changes.map(({ subject }) => subject)).size).toBe(wanted.length);
  expect(Math.min(...Object.values(kills))).toBeGreaterThanOrEqual(Math.floor(KILLS / 3));
});
