import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { blockOf } from '../stage/page-blocks.ts';
import type { RawResponse } from '../stage/raw-request.ts';
import { until } from '../stage/until.ts';
import { lastLine, MAIN, silent } from './command.ts';
import { type Sent, startReceiver } from './receiver.ts';
import { HIDDEN, relayUnderTest, SECRETS, USERINFO } from './relay-under-test.ts';

const relay = relayUnderTest();
const { stage, receiver, create, feed, start, run, endWhen, isTried, stored, outputs, leaks, relayPage } =
  relay;
const { files, call } = stage;

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
      'user-agent': expect.stringMatching(/^user-management-service-relay\/\d+\.\d+\.\d+/),
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
    relay.cursor = files.pathOf('oldest');
    await endWhen(start(['--from', 'oldest']), 'a page is delivered', () => receiver.deliveries.length >= 3);
    const [oldest] = receiver.deliveries;
    receiver.answer(() => 204);
    // The commands of the page.
    const users = `users() { exec "${process.execPath}" "${MAIN}" "$@"; }\n`;
    const commands = blockOf('infra/docs/relay.md', 'Relay changes to a receiver');
    const words = ['-euc', users + commands.replace(/(?<=USERS_RELAY_URL=)\S+/, receiver.url)];
    const env = { ...stage.variables, PATH: process.env.PATH };
    const running = spawn('sh', words, { cwd: files.folder, env });
    const printed = text(running.stderr);
    await until('the cursor is stored', () => readdirSync(files.folder).includes('cursor'));
    const [id] = await create(1);
    await until('it is delivered', () => receiver.deliveries.length === 1);
    running.kill();

    expect(oldest?.change).toMatchObject({ type: 'user.created', subject: stage.service.others[0].id });
    expect(receiver.deliveries[0]?.change).toMatchObject({ type: 'user.created', subject: id });
    expect(await printed).toBe('Stopped. Run the same command again without --from to continue.\n');
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
        const isAccepted = receiver.deliveries.length % 5 > 0;
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

    expect(second).toEqual(silent(1, `Another relay uses this cursor: it holds ${relay.cursor}.lock.`));
    expect(readdirSync(files.folder).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test('a relay whose lock another one has taken sends nothing', async () => {
    const running = start();
    await until('it holds the lock', () => existsSync(`${relay.cursor}.lock`));
    rmSync(`${relay.cursor}.lock`);
    await create(1);

    expect(await running.ended).toEqual(silent(1, `Another relay has taken ${relay.cursor}.lock.`));
    expect(receiver.deliveries).toEqual([]);
  });

  test('of several that start at one moment beside the lock of a killed one, one goes on', async () => {
    relay.cursor = files.write(`${'long'.repeat(40)}-${relay.nameOf('cursor')}`, stored());
    const killed = start();
    await until('it holds the lock', () => existsSync(`${relay.cursor}.lock`));
    killed.signal('SIGKILL');
    await killed.ended;
    const all = [start(), start(), start(), start()];
    await until('one is left', () => all.filter(({ isRunning }) => isRunning()).length === 1);
    await create(20);
    const [left] = all.filter(({ isRunning }) => isRunning());
    if (left) await endWhen(left, 'all are delivered', () => receiver.deliveries.length >= 20);

    expect(await Promise.all(all.map(async ({ ended }) => (await ended).code))).toEqual([1, 1, 1, 1]);
    expect(new Set(receiver.ids()).size).toBe(20);
    expect(receiver.deliveries).toHaveLength(20);
  });

  test('a cursor file that cannot be written is noticed before the first delivery', async () => {
    const words = ['relay', '--cursor', files.pathOf('unwritable'), '--from', 'oldest', '--to', receiver.url];
    const runBy = ['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh'];
    const { code, stderr } = await stage.run(words, { USERS_RELAY_SECRET: SECRETS[0] }, { runBy });

    expect([code, lastLine(stderr)]).toEqual([1, expect.stringMatching(/unwritable: EFBIG: file too large/)]);
    expect(receiver.deliveries).toEqual([]);
  });

  test('after SIGTERM the other changes of the page are sent, and one that waits for its next attempt is not', async () => {
    const [one] = await create(30);
    receiver.answer(({ change }, response) => {
      const status = change.subject === one ? 503 : 204;
      setTimeout(() => response.writeHead(status, { 'retry-after': '60' }).end(), 50);
      return undefined;
    });
    const running = start(['--parallel', '4']);
    await endWhen(running, 'a change waits', () => isTried(running));

    expect(new Set(receiver.ids()).size).toBe(30);
    expect(receiver.deliveries).toHaveLength(30);
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
    ['now', 2, / does not have a cursor\. /],
    ['nonsense', 2, / does not have a cursor of this service: 422 /],
    // A cursor whose changes are not available.
    [btoa('.999999').replace(/=+$/, ''), 4, / are no longer available \(410\)/],
  ])('a file with "%s" is exit code %i', async (content, code, message) => {
    files.write(relay.nameOf('cursor'), content);

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
  files.write('receiver.mjs', blockOf('infra/docs/relay.md', 'Receiver'));
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
  files.write(relay.nameOf('cursor'), before);
  await relayPage(['--to', to]);
  const forged = await fetch(to, { method: 'POST', body: '{}', headers: { 'webhook-id': '1' } });
  child.kill();

  expect(await printed).toBe(`user.created ${id}\nuser.updated ${id}\n`);
  expect(forged.status).toBe(401);
});

describe('wrong use', () => {
  const short = `whsec_${Buffer.alloc(23).toString('base64')}`;
  const far = `http://127.0.0.1.example.com/${HIDDEN}`;
  test.each<[string, readonly string[], NodeJS.ProcessEnv, RegExp]>([
    ['userinfo', ['--to', USERINFO], {}, /^--to or USERS_RELAY_URL must .* without credentials$/],
    ['userinfo in the wrong place', [USERINFO], {}, /^Unexpected argument\. See: users relay --help$/],
    ['no receiver', [], { USERS_RELAY_URL: '' }, /^set --to or USERS_RELAY_URL/],
    ['http elsewhere', ['--to', far], {}, /https: http:\/\/127\.0\.0\.1\.example\.com is not this machine, /],
    ['no secret', [], { USERS_RELAY_SECRET: '' }, /^USERS_RELAY_SECRET must be whsec_ and the base64 /],
    ['a short secret', [], { USERS_RELAY_SECRET: short }, /^USERS_RELAY_SECRET/],
    ['a secret without its prefix', [], { USERS_RELAY_SECRET: SECRETS[0]?.slice(6) }, /^USERS_RELAY_SECRET/],
    ['three secrets', [], { USERS_RELAY_SECRET: `${SECRETS.join(' ')} ${short}` }, /^USERS_RELAY_SECRET/],
    ['a number out of range', ['--parallel', '33'], {}, /^--parallel must be from 1 to 32\. /],
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
  expect(outputs.length).toBeGreaterThan(60);
  expect(leaks()).toEqual([]);
});
