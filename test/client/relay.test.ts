import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import type { RawResponse } from '../stage/raw-request.ts';
import { until } from '../stage/until.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { lastLine, linesOf, silent } from './command.ts';
import { newSecret, type Respond, type Sent, startReceiver } from './receiver.ts';

type Change = Sent & { readonly time: string };

const SECRETS = [newSecret(), newSecret()];
/** A part of a URL that only its receiver may know. */
const HIDDEN = 'path-of-the-receiver';

const stage = acceptableUnderTest();
const { files, call } = stage;
const receiver = forAllTests(() => startReceiver(SECRETS));
let cursors = 0;
let cursor: string;
/** Everything that a command has printed. */
const outputs: string[] = [];

/** Each test has a cursor of its own, at the head. */
beforeEach(async () => {
  receiver.answer(() => 204);
  cursors += 1;
  cursor = await stage.storeHead(`cursor-${cursors}`);
});

let named = 0;
const create = async (count: number): Promise<string[]> => {
  const items = Array.from({ length: count }, () => ({ email: `relayed.${++named}@example.com` }));
  const users = (await call('POST', 'batch', { items, mode: 'atomic' })) as { id: string }[];
  return users.map(({ id }) => id);
};
/** The changes after the cursor, as the feed has them. */
const feed = async () => {
  const copy = files.write('copy', files.read(`cursor-${cursors}`));
  const { stdout } = await stage.run(['follow', '--once', '--cursor', copy]);
  return { changes: linesOf(stdout) as unknown as Change[], lines: stdout.split('\n').slice(0, -1) };
};
const start = (words: readonly string[] = [], variables: NodeJS.ProcessEnv = {}) => {
  const running = stage.start(['relay', '--cursor', cursor, ...words], {
    USERS_RELAY_URL: `${receiver.url}/${HIDDEN}?key=${HIDDEN}`,
    USERS_RELAY_SECRET: SECRETS.join(' '),
    ...variables,
  });
  void running.ended.then(({ stdout, stderr }) => outputs.push(stdout, stderr));
  return running;
};
const run = (...parameters: Parameters<typeof start>) => start(...parameters).ended;
/** Waits until a condition holds, then ends the command in order. */
const endWhen = async (running: ReturnType<typeof start>, what: string, look: () => boolean) => {
  await until(what, look, { seconds: 50 });
  running.signal('SIGTERM');
  return running.ended;
};
const stored = () => files.read(`cursor-${cursors}`);
/** Relays until the cursor is replaced. */
const relayPage = (...parameters: Parameters<typeof start>) => {
  const before = stored();
  return endWhen(start(...parameters), 'a page is delivered', () => stored() !== before);
};
const isTried = ({ printed }: ReturnType<typeof start>) => printed.stderr.includes('is sent again');

describe('a delivery', () => {
  test('has the bytes of the feed and the headers of Standard Webhooks, and no token of the service', async () => {
    await create(3);
    const { lines, changes } = await feed();
    const ended = await relayPage();
    const [{ request }] = receiver.deliveries as [(typeof receiver.deliveries)[0]];

    expect(ended).toEqual(silent(1, 'Stopped. Run the same command again to continue.'));
    expect(receiver.deliveries.map(({ body }) => body)).toEqual(lines);
    expect(receiver.faults).toEqual([]);
    expect(request).toMatchObject({ method: 'POST', url: `/${HIDDEN}?key=${HIDDEN}` });
    expect(request.headers).toEqual({
      'content-type': 'application/cloudevents+json',
      'content-length': String(lines[0]?.length),
      'webhook-id': changes[0]?.id,
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'webhook-signature': expect.stringMatching(/^v1,[\w+/]{43}= v1,[\w+/]{43}=$/),
      host: `127.0.0.1:${receiver.port}`,
      connection: 'keep-alive',
    });
    // Everything was delivered: nothing comes again.
    expect((await feed()).lines).toEqual([]);
  });

  test('--from oldest begins with the oldest change, and --from now with later ones', async () => {
    cursor = files.pathOf('oldest');
    await endWhen(start(['--from', 'oldest']), 'a page is delivered', () => receiver.deliveries.length >= 3);
    const [oldest] = receiver.deliveries;
    receiver.answer(() => 204);
    cursor = files.pathOf('now');
    const running = start(['--from', 'now']);
    await until('the cursor is stored', () => readdirSync(files.folder).includes('now'));
    const [id] = await create(1);
    const { stderr } = await endWhen(running, 'it is delivered', () => receiver.deliveries.length === 1);

    expect(oldest?.change).toMatchObject({ type: 'user.created', subject: stage.service.others[0].id });
    expect(receiver.deliveries[0]?.change).toMatchObject({ type: 'user.created', subject: id });
    expect(stderr).toBe('Stopped. Run the same command again without --from to continue.\n');
  });

  test('with --parallel, changes of different users are under way together, and each user’s in order', async () => {
    const ids = await create(20);
    for (const full_name of ['one', 'two'])
      await Promise.all(ids.map((id) => call('PATCH', id, { full_name })));
    const { changes } = await feed();
    const accepted: Sent[] = [];
    let inProgress = 0;
    let most = 0;
    receiver.answer(({ change }, response) => {
      inProgress += 1;
      most = Math.max(most, inProgress);
      setTimeout(() => {
        inProgress -= 1;
        const isAccepted = Math.random() < 0.8;
        if (isAccepted) accepted.push(change);
        response.writeHead(isAccepted ? 204 : 500).end();
      }, 30);
      return undefined;
    });
    const { code } = await relayPage(['--parallel', '8']);
    const users = Map.groupBy(accepted, ({ subject }) => subject);

    expect([code, most]).toEqual([1, 8]);
    expect(accepted.length).toBe(changes.length);
    for (const of of users.values()) expect(of.map(({ data }) => data.version)).toEqual([1, 2, 3]);
  });

  test('--with-user has the user as it is at each attempt, and null for a deleted one', async () => {
    const [one = '', other = ''] = await create(2);
    await call('DELETE', other);
    receiver.answer((_, response, attempt) => {
      if (attempt > 1) return 200;
      void call('PATCH', one, { full_name: 'changed meanwhile' }).then(() => response.writeHead(503).end());
      return undefined;
    });
    await relayPage(['--with-user']);
    const users = receiver.deliveries.map(({ change }) => [change.subject, change.data.user]);
    const current = await call('GET', one);

    expect(users.slice(0, 4)).toEqual([
      [one, { ...current, full_name: null, updated_at: current.created_at, version: 1 }],
      [one, { ...current, updated_at: expect.any(String), version: 2 }],
      [other, null],
      [other, null],
    ]);
    expect(receiver.faults).toEqual([]);
  });
});

describe('a receiver that fails', () => {
  const raw = (bytes: string) => (_: unknown, response: ServerResponse) => void response.socket?.end(bytes);
  const FAILURES: Readonly<Record<string, Respond>> = {
    redirects: (_, response, attempt) =>
      void response.writeHead([302, 307, 308][attempt - 1] ?? 500, { location: '/elsewhere' }).end(),
    '4xx': (_, __, attempt) => [400, 401, 404][attempt - 1],
    '5xx': (_, __, attempt) => [500, 502, 503][attempt - 1],
    reset: ({ request }) => void request.socket.resetAndDestroy(),
    'cut within the head': raw('HTTP/1.1 200 OK\r\nContent-Le'),
    'no HTTP': raw('hello\r\n\r\n'),
    'another protocol': raw('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    'Retry-After that is neither': (_, response) =>
      void response.writeHead(429, { 'retry-after': 'soon' }).end(),
  };

  test('in any way gets the change again, with the same id, after growing random pauses', async () => {
    const names = Object.keys(FAILURES);
    const ids = await create(names.length);
    receiver.answer((delivery, response, attempt) =>
      attempt > 3
        ? 204
        : FAILURES[names[ids.indexOf(delivery.change.subject)] ?? '']?.(delivery, response, attempt),
    );
    const { stderr } = await relayPage(['--parallel', '32']);
    const attempts = Map.groupBy(receiver.deliveries, ({ change }) => change.id);

    expect([attempts.size, receiver.deliveries.length]).toEqual([names.length, 4 * names.length]);
    expect(receiver.deliveries.filter(({ request }) => request.url === '/elsewhere')).toEqual([]);
    for (const of of attempts.values())
      for (const [n, { at }] of of.slice(1).entries())
        expect(at - (of[n]?.at ?? 0)).toBeGreaterThan(190 * 2 ** n);
    expect(stderr.split(' is sent again.').length).toBe(3 * names.length + 1);
    expect(stderr).not.toContain('Warning');
    expect(receiver.faults).toEqual([]);
  });

  test('no response within 15 s is sent again, and one after 6 s, or with content without end, is delivery', async () => {
    const [late, slow, endless] = await create(3);
    receiver.answer(({ change }, response, attempt) => {
      if (change.subject === late) return attempt > 1 ? 204 : undefined;
      if (change.subject === slow) void sleep(6000).then(() => response.writeHead(200).end());
      if (change.subject === endless) response.writeHead(200).write('not the end');
      return undefined;
    });
    const { stderr } = await relayPage(['--parallel', '4']);
    const of = (id: string | undefined) => receiver.deliveries.filter(({ change }) => change.subject === id);
    const [first, second] = of(late);

    expect([of(late).length, of(slow).length, of(endless).length]).toEqual([2, 1, 1]);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(15_000);
    expect(stderr).toContain(
      `${receiver.url}: no response within 15 s. Change ${first?.change.id} is sent again.`,
    );
    expect(linesOf(`${stderr.split('\n').find((line) => line.startsWith('{'))}\n`)).toEqual([
      { event: 'relay_progress', delivered: 2, lag_s: expect.toBeOneOf([9, 10, 11, 12]) },
    ]);
  }, 60_000);

  test.each([
    ['seconds', () => '2'],
    ['a date', () => new Date(Date.now() + 3000).toUTCString()],
  ])('Retry-After in %s counts', async (_, retryAfter) => {
    await create(1);
    receiver.answer((_delivery, response, attempt) => {
      if (attempt > 1) return 204;
      return void response.writeHead(429, { 'retry-after': retryAfter() }).end();
    });
    await endWhen(start(), 'it is delivered', () => receiver.deliveries.length === 2);
    const [one, other] = receiver.deliveries.map(({ at }) => at);

    expect((other ?? 0) - (one ?? 0)).toBeGreaterThan(1950);
  });

  test('410 ends the command with exit code 5, and the cursor stays', async () => {
    await create(1);
    const before = stored();
    receiver.answer(() => 410);
    const ended = await run();

    expect(ended).toEqual(silent(5, `${receiver.url}: status 410: it wants no further changes`));
    expect([receiver.deliveries.length, stored()]).toEqual([1, before]);
  });

  test('a wrong certificate is refused, also with NODE_TLS_REJECT_UNAUTHORIZED=0, and a right one accepted', async () => {
    const options =
      '-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=receiver -addext subjectAltName=IP:127.0.0.1';
    const words = `req ${options} -keyout key.pem -out cert.pem`.split(' ');
    execFileSync('openssl', words, { cwd: files.folder, stdio: 'ignore' });
    const tls = { key: files.read('key.pem'), cert: files.read('cert.pem') };
    const secure = await forThisTest(startReceiver, SECRETS, tls);
    const [right, wrong] = [secure.url, secure.url.replace('127.0.0.1', 'localhost')];
    await create(1);
    const refused = async (to: string, variables: NodeJS.ProcessEnv) => {
      const running = start(['--to', to], variables);
      return (await endWhen(running, 'a try', () => isTried(running))).stderr;
    };
    const trusted = { NODE_EXTRA_CA_CERTS: files.pathOf('cert.pem') };

    expect(await refused(right, {})).toMatch(/self-signed certificate/);
    expect(await refused(right, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toMatch(/self-signed certificate/);
    expect(await refused(wrong, trusted)).toMatch(/does not match certificate's altnames/);
    expect(secure.deliveries).toEqual([]);
    await endWhen(start(['--to', right], trusted), 'it is delivered', () => secure.deliveries.length === 1);
  });
});

describe('--skip-refused', () => {
  const refused = () => files.lines(`refused-${cursors}`).map(({ subject }) => subject);
  const skip = () => ['--skip-refused', files.pathOf(`refused-${cursors}`)];

  test('passes a change that is refused five times in a row, and two more after a delivery, without the values of its user', async () => {
    const [one, two, three, four] = await create(4);
    receiver.answer(({ change }, _, attempt) => {
      if (change.subject === one) return [422, 503, 400, 413, 415, 422, 400][attempt - 1];
      return change.subject === two ? 204 : 400;
    });
    await relayPage([...skip(), '--with-user']);
    const attempts = [...Map.groupBy(receiver.ids(), (id) => id).values()].map(({ length }) => length);

    expect(attempts).toEqual([7, 1, 5, 5]);
    expect(refused()).toEqual([one, three, four]);
    expect(files.read(`refused-${cursors}`)).not.toContain('"user":');
  }, 60_000);

  test('the third in a row ends the command with exit code 1, again and again, and is not passed', async () => {
    const ids: string[] = [];
    receiver.answer(() => 422);
    const before = stored();
    const running = start(skip());
    // Each in a page of its own.
    for (const count of [1, 2, 3]) {
      ids.push(...(await create(1)));
      const isPassed = () => running.printed.stderr.split(' is passed').length > count;
      await until('it is passed', () => !running.isRunning() || isPassed(), { seconds: 20 });
    }
    const { code, stderr } = await running.ended;
    const again = await run([...skip(), '--parallel', '4']);

    expect([code, again.code]).toEqual([1, 1]);
    expect(lastLine(stderr)).toMatch(/: status 422 for change \S+, the third in a row, which is not passed$/);
    expect([refused().length, refused().slice(0, 2), stored()]).toEqual([4, ids.slice(0, 2), before]);
  }, 60_000);
});

describe('the cursor', () => {
  test('a second relay with it is refused, and one after a kill continues', async () => {
    await create(1);
    receiver.answer(() => 503);
    const first = start();
    await until('the first one runs', () => receiver.deliveries.length > 0);
    const second = await run();
    first.signal('SIGKILL');
    await first.ended;
    receiver.answer(() => 204);
    await endWhen(start(), 'it is delivered', () => receiver.deliveries.length > 0);

    expect(second).toEqual(silent(1, `Another relay uses this cursor: it holds ${cursor}.lock.`));
    expect(readdirSync(files.folder).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test('a relay whose lock another one has taken sends nothing', async () => {
    const running = start();
    await until('it holds the lock', () => existsSync(`${cursor}.lock`));
    rmSync(`${cursor}.lock`);
    await create(1);

    expect(await running.ended).toEqual(silent(1, `Another relay has taken ${cursor}.lock.`));
    expect(receiver.deliveries).toEqual([]);
  });

  test('a page comes again after a kill, and no further one', async () => {
    await create(100);
    await create(100);
    const { changes } = await feed();
    receiver.answer(() => (receiver.deliveries.length > 150 ? undefined : 204));
    const running = start();
    await until('half of the second page is delivered', () => receiver.deliveries.length > 150);
    running.signal('SIGKILL');
    await running.ended;
    const delivered = receiver.ids();
    receiver.answer(() => 204);
    await endWhen(start(), 'all are', () => receiver.deliveries.length === 100);

    expect(delivered).toEqual(changes.slice(0, 151).map(({ id }) => id));
    expect(receiver.ids()).toEqual(changes.slice(100).map(({ id }) => id));
  });

  test.each([
    ['', 2, / is empty\. /],
    ['two words', 2, / does not have a cursor\. /],
    ['nonsense', 2, / does not have a cursor of this service: 422 /],
    // A cursor whose changes are not available.
    [btoa('.999999').replace(/=+$/, ''), 4, / are no longer available \(410\)/],
  ])('a file with "%s" is exit code %i', async (content, code, message) => {
    files.write(`cursor-${cursors}`, content);

    expect(await run()).toMatchObject({ code, stderr: expect.stringMatching(message) });
    expect(stored().trim()).toBe(content);
  });
});

test('a service that fails is reported and asked again, and nothing is lost', async () => {
  const html = { 'content-type': 'text/html' };
  const answers: readonly Partial<RawResponse>[] = [
    { status: 302, headers: { location: 'https://elsewhere.example.com/' }, body: '' },
    { status: 200, headers: html, body: '<h1>Sign in</h1>' },
    { status: 503, headers: html, body: 'later' },
  ];
  let count = 0;
  const front = await stage.startBreaking({ onResponse: (answer) => ({ ...answer, ...answers[count++] }) });
  const [id] = await create(1);
  const { stderr } = await relayPage(['--with-user'], { USERS_URL: front.url });

  expect(receiver.deliveries.map(({ change }) => change.subject)).toEqual([id]);
  expect(stderr).toMatch(
    /^The service: unexpected response 302: .*\nThe service: unexpected response 200: .*\n/,
  );
});

test('the receiver of these tests finds a wrong signature of each secret', async () => {
  const judge = await forThisTest(startReceiver, SECRETS);
  const at = String(Math.floor(Date.now() / 1000));
  const headers = { 'webhook-id': '1', 'webhook-timestamp': at, 'webhook-signature': 'v1,AAAA' };
  await fetch(judge.url, { method: 'POST', body: '{}', headers });

  expect(judge.faults).toHaveLength(SECRETS.length);
});

test('the receiver of the page accepts signed changes once, and refuses others', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../infra/relay.md'), 'utf8');
  const [, program = ''] = /```js\n(.*?)```/s.exec(page) ?? [];
  files.write('receiver.mjs', program);
  symlinkSync(join(import.meta.dirname, '../node_modules'), files.pathOf('node_modules'));
  const port = await freePort();
  const env = { PORT: String(port), USERS_RELAY_SECRET: SECRETS[0] };
  const child = spawn(process.execPath, [files.pathOf('receiver.mjs')], { env });
  const printed = text(child.stdout);
  const [id] = await create(1);
  await call('PATCH', id, { full_name: 'changed' });
  const before = stored();
  const to = `http://127.0.0.1:${port}/`;
  await relayPage(['--to', to]);
  files.write(`cursor-${cursors}`, before);
  await relayPage(['--to', to]);
  const forged = await fetch(to, { method: 'POST', body: '{}', headers: { 'webhook-id': '1' } });
  child.kill();

  expect(await printed).toBe(`user.created ${id}\nuser.updated ${id}\n`);
  expect(forged.status).toBe(401);
});

describe('wrong use', () => {
  const userinfo = 'https://name:word-of-the-user@receiver.example.com/';
  const short = `whsec_${Buffer.alloc(23).toString('base64')}`;
  const far = `http://127.0.0.1.example.com/${HIDDEN}`;
  test.each<[string, readonly string[], NodeJS.ProcessEnv, RegExp]>([
    ['userinfo', ['--to', userinfo], {}, /^--to or USERS_RELAY_URL must .* without credentials$/],
    ['userinfo in the variable', [], { USERS_RELAY_URL: userinfo }, / without credentials$/],
    ['userinfo in the wrong place', [userinfo], {}, /^Unexpected argument\. See: users relay --help$/],
    ['no receiver', [], { USERS_RELAY_URL: '' }, /^set --to or USERS_RELAY_URL/],
    ['http elsewhere', ['--to', far], {}, /https: http:\/\/127\.0\.0\.1\.example\.com is not this machine, /],
    ['no secret', [], { USERS_RELAY_SECRET: '' }, /^USERS_RELAY_SECRET must be whsec_ and the base64 /],
    ['a short secret', [], { USERS_RELAY_SECRET: short }, /^USERS_RELAY_SECRET/],
    ['a secret without its prefix', [], { USERS_RELAY_SECRET: SECRETS[0]?.slice(6) }, /^USERS_RELAY_SECRET/],
    ['three secrets', [], { USERS_RELAY_SECRET: `${SECRETS.join(' ')} ${short}` }, /^USERS_RELAY_SECRET/],
    ['a number out of range', ['--parallel', '33'], {}, /^--parallel must be from 1 to 32\. /],
    ['not a number', ['--parallel', '1.5'], {}, /^--parallel must be from 1 to 32\. /],
    ['another beginning', ['--from', 'yesterday'], {}, /^--from must be now or oldest\. /],
    ['a beginning beside a cursor', ['--from', 'now'], {}, /cursor-\d+ exists\. Leave out --from/],
    ['no cursor file and no beginning', ['--cursor', '/none'], {}, /Add --from now or --from oldest\.$/],
    ['one file for both', ['--cursor', 'a', '--skip-refused', 'a'], {}, /^--cursor and --skip-refused must /],
    ['a secret as an argument', ['--secret', SECRETS[0] ?? ''], {}, /^Unknown option '--secret'/],
    ['a file that cannot be written', ['--skip-refused', '/none/x'], {}, /^\/none\/x cannot be written: /],
  ])('%s: exit code 2, and nothing is sent', async (_, words, variables, message) => {
    const { code, stdout, stderr } = await run(words, variables);

    expect([code, stdout, lastLine(stderr)]).toEqual([2, '', expect.stringMatching(message)]);
    expect(receiver.deliveries).toEqual([]);
  });
});

test('--allow-http lets it send to another machine, and its origin alone is reported', async () => {
  await create(1);
  const running = start(['--allow-http', '--to', `http://receiver.invalid/${HIDDEN}`]);
  const { stderr } = await endWhen(running, 'a try', () => isTried(running));

  expect(stderr).toMatch(/^http:\/\/receiver\.invalid: getaddrinfo \w+ receiver\.invalid\. Change /);
});

test('no secret, token or part of the URL but its origin was printed', () => {
  const keys = SECRETS.map((secret) => secret.slice('whsec_'.length));

  expect(outputs.length).toBeGreaterThan(60);
  for (const secret of [...keys, String(stage.variables.USERS_TOKEN), HIDDEN, 'word-of-the-user'])
    expect(outputs.filter((text) => text.includes(secret))).toEqual([]);
});
