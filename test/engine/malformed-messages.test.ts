import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate as nextPass } from 'node:timers/promises';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { forAllTests } from '../stage/for-all-tests.ts';
import { messageOf, messagesThrough } from '../stage/postgres-messages.ts';
import { addressOf, startProxy, through } from '../stage/proxy.ts';
import { freshAddress, probe, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { answerAtStart } from '../stage/session-start.ts';
import { timed, until } from '../stage/until.ts';

const COMMANDS = join(import.meta.dirname, '../../host/commands');

/** Longer than a pass of a loaded machine, and shorter than a loop that never ends. */
const MAX_LATENCY_MS = 3000;

const authentication = (method: number, content = '') =>
  messageOf('R', `\0\0\0${String.fromCharCode(method)}${content}`);

/** The first bytes of a message that says it is longer or shorter than it is. */
function sized(type: string, length: number): Buffer {
  const bytes = messageOf(type, '\0\0\0\0');
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

const AT_START: Readonly<Record<string, Buffer>> = {
  'an error without its final zero': messageOf('E', 'SFATAL\0C57P01\0Mended\0'),
  'the authentication method gss': authentication(7),
  'an unknown authentication method': authentication(99),
  'unknown mechanisms': authentication(10, 'SCRAM-SHA-512\0\0'),
  'mechanisms without their final zero': authentication(10, 'SCRAM-SHA-256\0'),
  'a challenge that was not asked for': authentication(11, 'r=a,s=YQ==,i=4096'),
  'an end of SCRAM that was not asked for': authentication(12, 'v=YQ=='),
  'a salt that is too short': authentication(5, 'ab'),
  'an authentication without a method': messageOf('R', '\0'),
  'a key that is too short': messageOf('K', '\0\0\0\x01'),
  'a row before the session': messageOf('D', '\0\0'),
};

const IN_A_SESSION: Readonly<Record<string, Buffer>> = {
  'an unknown type': messageOf('!', 'what'),
  'a length of 3': sized('S', 3),
  'a length of 2 GiB': sized('E', 2 ** 31 - 1),
  'an error without its final zero': messageOf('E', 'SFATAL\0C57P01\0Mended\0'),
  'an error without a code': messageOf('E', 'SFATAL\0Mended\0\0'),
  'a notice without its final zero': messageOf('N', 'SNOTICE\0C00000\0Mchecked\0'),
  'a parameter without a value': messageOf('S', 'TimeZone\0'),
  'a notification without a payload': messageOf('A', '\0\0\0\x01channel\0'),
  CopyInResponse: messageOf('G', '\0\0\0'),
  'a request for the password': authentication(3),
  'a row with too few fields': messageOf('D', '\0\x01\0\0\0\x01a'),
  'a row with too many fields': messageOf('D', `\0\x20${'\xff\xff\xff\xff'.repeat(32)}`),
  'a row of negative length': messageOf('D', '\0\x01\xff\xff\xff\xf0'),
  'a field longer than its row': messageOf('D', '\0\x01\0\0\x01\0a'),
  'a row with bytes behind its fields': messageOf('D', '\0\x01\0\0\0\x01abc'),
  'columns without an end': messageOf('T', '\0\x01name'),
  'the end of a statement without a completed command': messageOf('Z', 'I'),
  'a completed command without its final zero': messageOf('C', 'SELECT 1'),
  'a completed command of other rows': messageOf('C', 'SELECT 9\0'),
};

const proxy = forAllTests(() => startProxy(inject('postgres')));

const service = serviceUnderTest(() => addressOf(proxy));
const { call } = service;
const create = () => call('POST', USERS, { email: freshAddress() });

async function expectResponsive(): Promise<void> {
  const { value, milliseconds } = await timed(call('GET', '/health'));
  expect(value).toEqual(probe('healthy'));
  expect(milliseconds).toBeLessThan(MAX_LATENCY_MS);
}

async function expectRecovery(): Promise<void> {
  await proxy.pass();
  await until('/ready is 200', async () => (await call('GET', '/ready')).status === 200);
  await until('a user is stored', async () => (await create()).status === 201);
}

test.each(Object.entries(AT_START))(
  'a session that begins with %s is closed: 503 with the reason, and recovery by itself',
  async (_name, bytes) => {
    await proxy.pass();
    answerAtStart(proxy, bytes);
    proxy.cutAll();

    expect(await call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await create()).toEqual(refusal('service_unavailable_error', USERS));
    expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
    await expectResponsive();
    await expectRecovery();
  },
);

describe('in the middle of a load', () => {
  let user: UserBody;
  beforeAll(async () => {
    await expectRecovery();
    user = (await create()).body as UserBody;
  });

  /** Requests of each kind of statement, and the statuses of their responses. */
  async function load(): Promise<readonly number[]> {
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => [
        call('GET', USERS + user.id),
        call('GET', `${USERS}?limit=3`),
        call('GET', `${USERS}changes?limit=3`),
        call('PATCH', USERS + user.id, { full_name: freshAddress() }),
        call('POST', `${USERS}batch`, { items: [{ email: freshAddress() }] }),
        create(),
      ]).flat(),
    );
    return responses.map(({ status }) => status);
  }

  const untilServed = () =>
    until('requests are served', async () => (await load()).every((status) => status < 300));

  /** Changes the messages of new sessions, and waits until requests are served on such sessions. */
  async function interfere(pass: Parameters<typeof messagesThrough>[0]): Promise<void> {
    await proxy.pass();
    proxy.answersThrough(() => messagesThrough(pass));
    proxy.cutAll();
    await untilServed();
  }

  test.each(Object.entries(IN_A_SESSION))(
    '%s closes the session: 200 or 503, and recovery by itself',
    async (_name, bytes) => {
      const before = bytes.length % 2 === 0 ? 'D' : 'C';
      let isMalformed = false;
      await interfere((type, message) =>
        isMalformed && type === before ? Buffer.concat([bytes, message]) : message,
      );
      isMalformed = true;

      expect([200, 201, 503]).toEqual(expect.arrayContaining([...new Set(await load())]));
      await expectResponsive();
      isMalformed = false;
      await untilServed();
      expect((await service.events()).map(({ event }) => event)).toContain('postgres_session_closed');
    },
  );

  test.each([
    ['row', 'D'],
    ['completed command', 'C'],
  ])('a %s that is missing is never a 404 or a gap: 503', async (_name, missing) => {
    let isMissing = false;
    await interfere((type, message) => (isMissing && type === missing ? undefined : message));
    isMissing = true;

    const statuses = await load();
    isMissing = false;
    expect(new Set(statuses)).toEqual(new Set([503]));
    await expectRecovery();
  });

  test('messages that arrive in pieces are read', async () => {
    await proxy.pass();
    proxy.answersThrough(() =>
      through(async (chunk, push) => {
        for (let at = 0; at < chunk.length; at += 3) {
          push(chunk.subarray(at, at + 3));
          await nextPass();
        }
      }),
    );
    onTestFinished(() => proxy.pass());
    proxy.cutAll();

    await untilServed();
  });
});

test('/ready and the log name the authentication method that is not supported', async () => {
  await proxy.pass();
  answerAtStart(proxy, authentication(7));
  const starting = await startService(addressOf(proxy), undefined, { waitsUntilReady: false });
  await starting.call('GET', '/ready');
  const events = await starting.events();
  await starting.stop();

  const message = expect.stringContaining('requires the authentication method gss');
  expect(events).toContainEqual(
    expect.objectContaining({ event: 'postgres_unavailable', cause: expect.objectContaining({ message }) }),
  );
  expect(events).toContainEqual(expect.objectContaining({ event: 'app_error', path: '/ready', message }));
});

test.each(['migrate', 'run-cleanup'])('the command %s prints one reason without a stack', async (command) => {
  await proxy.pass();
  answerAtStart(proxy, authentication(7));
  const child = spawn(process.execPath, [join(COMMANDS, `${command}.ts`)], {
    env: { ...process.env, ...environmentOf(service.database, service.issuer), ...addressOf(proxy) },
  });
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);

  expect(output).toMatch(
    /^.*requires the authentication method gss \(pg_hba\.conf\), which is not supported\n$/,
  );
  expect(code).toBe(1);
});
