import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startBuiltHost } from '../stage/built-service.ts';
import { senderTo, untilReady } from '../stage/caller.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startProxy } from '../stage/proxy.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { repeat, until } from '../stage/until.ts';
import { type Ended, lastLine, linesOf, openFiles, runCommand, startCommand, usersNamed } from './command.ts';
import { type Sent as Change, newSecret } from './receiver.ts';

/** `KILLS=50` is the long form. */
const KILLS = Number(process.env.KILLS ?? 20);

/** Users in a file. While a file is imported, something is killed several times. */
const USERS = 5000;

/** A proxy, which leads nowhere yet. What is started again behind it has another port each time. */
const startFront = () => startProxy({ host: '127.0.0.1', port: 0 });

const postgres = forAllTests(startDisposablePostgres);
const issuer = forAllTests(startIssuer);
const proxy = forAllTests(startFront);
let host: Awaited<ReturnType<typeof startBuiltHost>>;
let variables: NodeJS.ProcessEnv;
const files = openFiles();
afterAll(files.remove);

async function startService(): Promise<void> {
  host = await startBuiltHost(environmentOf(postgres, issuer));
  const url = new URL(await host.untilListening());
  await untilReady(url.origin);
  proxy.leadTo({ host: url.hostname, port: Number(url.port) });
}

/** Each kills a part of the service, and starts it again. */
const restarts = [
  async () => {
    host.signal('SIGKILL');
    await host.remove();
    await startService();
  },
  async () => {
    await postgres.kill();
    await postgres.start();
  },
];

beforeAll(async () => {
  await startService();
  variables = {
    USERS_URL: `http://127.0.0.1:${proxy.port}`,
    USERS_TOKEN: await issuer.sign({ exp: Math.floor(Date.now() / 1000) + 3600 }),
  };
  return () => host.remove();
});

/** Each line of a file that is not a user, and the last line, which repeats the first. */
const bad = '{"email":"nobody"}\nno JSON\n';

function expectWhole({ code, stderr }: Ended): void {
  expect([code, lastLine(stderr)]).toEqual([3, `created ${USERS}, exists 1, refused 2`]);
}

test(`after ${KILLS} kills of the command, the service and PostgreSQL no user is lost, and none occurs twice`, {
  timeout: KILLS * 20_000,
}, async () => {
  await runCommand(['export', '--cursor', files.pathOf('beginning')], variables);
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
  onTestFinished(() => void running.signal('SIGKILL'));
  const killCommand = async () => {
    running.signal('SIGKILL');
    await running.ended;
    running = start();
  };
  const victims = [killCommand, ...restarts];
  for (let count = 0; count < KILLS; count += 1) {
    await sleep(randomInt(20, 400));
    if (!running.isRunning()) {
      expectWhole(await running.ended);
      running = startNext();
      await sleep(randomInt(150, 400));
    }
    await victims[count % victims.length]?.();
  }
  await running.ended;

  // Each file once more. Its lines have the same results, after any interruption.
  for (const name of names) expectWhole(await runCommand(['import', files.pathOf(name)], variables));
  const exported = await runCommand(['export'], variables);
  const followed = await runCommand(['follow', '--once', '--cursor', files.pathOf('beginning')], variables);
  const stored = linesOf(exported.stdout).map(({ email }) => String(email));
  const wanted = names.flatMap((name) => linesOf(usersNamed(name, USERS)).map(({ email }) => String(email)));
  const rows = await postgres.query('SELECT count(*)::int AS users FROM users', postgres.database);
  const changes = linesOf(followed.stdout);

  expect([exported.code, followed.code]).toEqual([0, 0]);
  expect(stored.sort()).toEqual(wanted.sort());
  expect(rows).toEqual([{ users: wanted.length }]);
  expect(changes.length).toBe(wanted.length);
  expect(new Set(changes.map(({ type }) => type))).toEqual(new Set(['user.created']));
  expect(new Set(changes.map(({ subject }) => subject)).size).toBe(wanted.length);
});

type Received = Readonly<Record<'id' | 'at' | 'signature' | 'body', string>> & { readonly status: number };

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

  const front = await forThisTest(startFront);
  const startReceiver = async () => {
    const child = spawn(process.execPath, ['--eval', RECEIVER, log], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [port] = await once(child.stdout, 'data');
    front.leadTo({ host: '127.0.0.1', port: Number(port) });
    return child;
  };
  let receiver = await startReceiver();
  const relayed = {
    ...variables,
    USERS_RELAY_URL: `http://127.0.0.1:${front.port}/`,
    USERS_RELAY_SECRET: secret,
  };
  const startRelay = () => startCommand(['relay', '--cursor', cursor, '--parallel', '4'], relayed);
  let relay = startRelay();
  onTestFinished(() => {
    relay.signal('SIGKILL');
    receiver.kill('SIGKILL');
  });

  /** Each writer creates a user, changes it twice and deletes it, and goes on after any failure. */
  let created = 0;
  const write = async () => {
    const send = senderTo(`${variables.USERS_URL}/api/v1/users/`, issuer);
    const call = async (method: string, path: string, body?: object) => {
      const response = await send(method, path, body, { signal: AbortSignal.timeout(5000) });
      return response.json().catch(() => undefined);
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
  onTestFinished(() => Promise.all(writers.map((stop) => stop())).then(() => {}));

  const killRelay = async () => {
    relay.signal('SIGKILL');
    await relay.ended;
    appendFileSync(log, '{"killed":true}\n');
    relay = startRelay();
  };
  const killReceiver = async () => {
    receiver.kill('SIGKILL');
    receiver = await startReceiver();
  };
  const victims = [killRelay, killReceiver, ...restarts];
  for (let count = 0; count < KILLS; count += 1) {
    await sleep(randomInt(20, 600));
    await victims[count % victims.length]?.();
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

  const lives = readLives();
  const all = lives.flat();
  const accepted = Map.groupBy(acceptedOf(lives), ({ id }) => id);
  const first = [...accepted.values()].map(([delivery]) => JSON.parse(delivery?.body ?? '') as Change);
  const seen = new Set<string>();
  const again = lives.map((life) => {
    const own = [...new Set(life.map(({ id }) => id))];
    const count = own.filter((id) => seen.has(id)).length;
    for (const id of own) seen.add(id);
    return count;
  });

  expect([code, followed.code]).toEqual([1, 0]);
  expect(changes.length).toBeGreaterThan(10 * KILLS);
  expect(new Set(accepted.keys())).toEqual(ids);
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
