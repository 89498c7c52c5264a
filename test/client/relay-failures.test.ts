import { execFileSync } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { forThisTest } from '../stage/for-all-tests.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { BUSY_S, until } from '../stage/until.ts';
import { lastLine, linesOf, silent } from './command.ts';
import { type Respond, startReceiver } from './receiver.ts';
import { relayUnderTest, SECRETS } from './relay-under-test.ts';

const { stage, receiver, create, start, run, endWhen, isTried, stored, outputs, leaks, relayPage, nameOf } =
  relayUnderTest();
const { files } = stage;

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
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(14_000);
    expect(stderr).toContain(
      `${receiver.url}: no response within 15 s. Change ${first?.change.id} is sent again.`,
    );
    expect(linesOf(`${stderr.split('\n').find((line) => line.startsWith('{'))}\n`)).toEqual([
      {
        ...JSON.parse(blockOf('infra/docs/relay.md', 'Progress')),
        delivered: 2,
        lag_s: expect.toSatisfy((lag: number) => lag >= 9 && lag <= 12 + BUSY_S),
      },
    ]);
  });

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
  const refused = () => files.lines(nameOf('refused')).map(({ subject }) => subject);
  const skip = () => ['--skip-refused', files.pathOf(nameOf('refused'))];

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
    expect(files.read(nameOf('refused'))).not.toContain('"user":');
  });

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
  });
});

test('no secret, token or part of the URL but its origin was printed', () => {
  expect(outputs.length).toBeGreaterThan(20);
  expect(leaks()).toEqual([]);
});
