import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/built-service.ts';
import { type DisposablePostgres, startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { startProxy } from '../stage/proxy.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { repeat, until } from '../stage/until.ts';
import { linesOf, openFiles, runCommand, startCommand, usersNamed } from './command.ts';
import { type Sent as Change, firstById, newSecret } from './receiver.ts';

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
  host = await startBuiltHost(environmentOf(postgres, issuer));
  const url = new URL(await host.untilListening());
  await untilReady(url.origin);
  const target = { host: url.hostname, port: Number(url.port) };
  if (proxy) proxy.leadTo(target);
  else proxy = await startProxy(target);
}

/** Kills a part of the service, and starts it again. */
const restarts = {
  async service() {
    host.signal('SIGKILL');
    await host.remove();
    await startService();
  },
  async postgres() {
    await postgres.kill();
    await postgres.start();
  },
};

/** The name and the restart of the victim that is next. */
function nextOf<Victim extends string>(
  victims: Readonly<Record<Victim, () => Promise<void>>>,
  count: number,
) {
  const all = Object.entries(victims) as [Victim, () => Promise<void>][];
  return all[count % all.length] as [Victim, () => Promise<void>];
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
  const victims = {
    async command() {
      running.signal('SIGKILL');
      await running.ended;
      running = start();
    },
    ...restarts,
  };
  for (let count = 0; count < KILLS; count += 1) {
    await sleep(randomInt(20, 400));
    if (!running.isRunning()) {
      const { code, stderr } = await running.ended;
      expect([code, stderr.split('\n').at(-2)]).toEqual([3, `created ${USERS}, exists 1, refused 2`]);
      running = startNext();
      await sleep(randomInt(150, 400));
    }
    const [victim, restart] = nextOf(victims, count);
    kills[victim] += 1;
    await restart();
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

type Received = {
  readonly status: number;
  readonly id: string;
  readonly at: string;
  readonly signature: string;
  readonly body: string;
};

/** Appends every request to a file, refuses a tenth of them, and prints its port. */
const RECEIVER = `
  const [{ appendFileSync }, { createServer }] = [require('node:fs'), require('node:http')];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers;
    const status = Math.random() < 0.1 ? 500 : 204;
    appendFileSync(process.argv[1], JSON.stringify({ id, at, signature, body, status }) + '\\n');
    response.writeHead(status).end();
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

test(`after ${KILLS} kills of the relay, the receiver, the service and PostgreSQL every change is delivered, in the order of its user`, {
  timeout: KILLS * 20_000,
}, async () => {
  const [secret, log, cursor] = [newSecret(), files.write('received', ''), files.pathOf('relay-cursor')];
  await runCommand(['export', '--cursor', cursor], variables);
  const beginning = files.write('relay-beginning', files.read('relay-cursor'));

  let receiver: ChildProcess | undefined;
  let front: typeof proxy | undefined;
  const startReceiver = async () => {
    receiver = spawn(process.execPath, ['--eval', RECEIVER, log], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = await once(receiver.stdout as Readable, 'data');
    const target = { host: '127.0.0.1', port: Number(port) };
    if (front) front.leadTo(target);
    else front = await startProxy(target);
    return front;
  };
  const { port } = await startReceiver();
  const relayed = { ...variables, USERS_RELAY_URL: `http://127.0.0.1:${port}/`, USERS_RELAY_SECRET: secret };
  const startRelay = () => startCommand(['relay', '--cursor', cursor, '--parallel', '4'], relayed);
  let relay = startRelay();

  /** Each writer creates a user, changes it twice and deletes it, and goes on after any failure. */
  let created = 0;
  const write = async () => {
    const headers = { authorization: `Bearer ${variables.USERS_TOKEN}`, 'content-type': 'application/json' };
    const call = async (method: string, path: string, body?: object) => {
      const init = {
        method,
        headers,
        signal: AbortSignal.timeout(5000),
        ...(body && { body: JSON.stringify(body) }),
      };
      return (await fetch(`${variables.USERS_URL}/api/v1/users/${path}`, init)).json().catch(() => undefined);
    };
    try {
      const { id } = await call('POST', '', { email: `relayed.${++created}@example.com` });
      for (const full_name of ['one', 'two']) await call('PATCH', id, { full_name });
      await call('DELETE', id);
    } catch {
      await sleep(50);
    }
  };
  const writers = Array.from({ length: 4 }, () => repeat(write));

  const victims = {
    async relay() {
      relay.signal('SIGKILL');
      await relay.ended;
      appendFileSync(log, '{"killed":true}\n');
      relay = startRelay();
    },
    async receiver() {
      receiver?.kill('SIGKILL');
      await startReceiver();
    },
    ...restarts,
  };
  for (let count = 0; count < KILLS; count += 1) {
    await sleep(randomInt(20, 600));
    const [, restart] = nextOf(victims, count);
    await restart();
  }
  for (const stop of writers) await stop();

  const followed = await runCommand(['follow', '--once', '--cursor', beginning], variables);
  const changes = linesOf(followed.stdout) as unknown as Change[];
  const ids = new Set(changes.map(({ id }) => id));
  const readLives = () =>
    files
      .read('received')
      .split('{"killed":true}\n')
      .map((text) => linesOf(text) as unknown as Received[]);
  const acceptedOf = (lives: Received[][]) => lives.flat().filter(({ status }) => status === 204);
  const isDelivered = () => {
    const received = new Set(acceptedOf(readLives()).map(({ id }) => id));
    return changes.every(({ id }) => received.has(id));
  };
  await until('all are delivered', isDelivered, { seconds: 60 + 4 * KILLS });
  relay.signal('SIGTERM');
  const { code } = await relay.ended;
  receiver?.kill('SIGKILL');
  await front?.stop();

  const lives = readLives();
  const all = lives.flat();
  const first = firstById(acceptedOf(lives)).map(({ body }) => JSON.parse(body) as Change);
  const seen = new Set<string>();
  const again = lives.map((life) => {
    const own = [...new Set(life.map(({ id }) => id))];
    const count = own.filter((id) => seen.has(id)).length;
    for (const id of own) seen.add(id);
    return count;
  });

  expect([code, followed.code]).toEqual([1, 0]);
  expect(changes.length).toBeGreaterThan(10 * KILLS);
  expect(new Set(first.map(({ id }) => id))).toEqual(ids);
  // What came again has the same bytes, and each signature is right.
  expect(new Set(all.map(({ id, body }) => id + body)).size).toBe(ids.size);
  expect(
    all.filter(
      ({ id, at, signature, body }) =>
        new Webhook(secret).sign(id, new Date(Number(at) * 1000), body) !== signature,
    ),
  ).toEqual([]);
  for (const of of Map.groupBy(first, ({ subject }) => subject).values()) {
    const versions = of.map(({ data }) => data.version);
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
  }
  expect(lives.length).toBe(1 + Math.ceil(KILLS / 4));
  expect(Math.max(...again)).toBeLessThanOrEqual(100);
});
