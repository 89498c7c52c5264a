import { randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { TERMINAL } from '../stage/terminal.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { linesOf, silent } from './command.ts';

const stage = acceptableUnderTest();
const { call, run, startBreaking } = stage;
const users: Record<string, Record<string, unknown>> = {};

const UUID = randomUUID();

beforeAll(async () => {
  const named = {
    mary: { email: 'Mary.Shelley@example.com', full_name: 'Mary\x1b[2J\u202e\u009bShelley' },
    uuid: { email: 'uuid@example.com', external_id: UUID },
    email: { email: 'mail@example.com', external_id: 'mary@elsewhere' },
    malformed: { email: 'malformed@example.com', external_id: '@@' },
    plain: { email: 'plain@example.com', external_id: 'hr é+4711' },
    // Another user has this email.
    both: { email: 'both@example.com', external_id: 'Mary.Shelley@example.com' },
  };
  for (const [name, user] of Object.entries(named)) users[name] = await call('POST', '', user);
});

const none = silent(3, 'There is no such user.');

test.each<[string, () => readonly string[], string | undefined]>([
  ['a UUID is an id', () => [String(users.mary?.id)], 'mary'],
  ['a UUID in upper case is an id', () => [String(users.mary?.id).toUpperCase()], 'mary'],
  ['a UUID that no user has is an external id', () => [UUID], 'uuid'],
  ['a text with @ is an email', () => ['MARY.shelley@example.com'], 'mary'],
  ['an email that no user has is an external id', () => ['mary@elsewhere'], 'email'],
  ['a text that cannot be an email is an external id', () => ['@@'], 'malformed'],
  ['any other text is an external id', () => ['hr é+4711'], 'plain'],
  ['--by external_id', () => ['Mary.Shelley@example.com', '--by', 'external_id'], 'both'],
  ['--by email', () => ['mail@example.com', '--by=email'], 'email'],
  ['--by id', () => [String(users.mary?.id), '--by', 'id'], 'mary'],
  ['--by id of an external id', () => [UUID, '--by', 'id'], undefined],
  ['--by email of an external id', () => ['mary@elsewhere', '--by', 'email'], undefined],
  ['no such id', () => [randomUUID()], undefined],
  ['no such email', () => ['nobody@example.com'], undefined],
  ['no such external id', () => ['hr 4712'], undefined],
])('users get: %s', async (_, words, name) => {
  const ended = await run(['get', ...words()]);

  expect(ended).toEqual(
    name === undefined ? none : { code: 0, stdout: `${JSON.stringify(users[name])}\n`, stderr: '' },
  );
});

test('users changes writes the changes of one user, one per line, also after its deletion', async () => {
  const { id } = await call('POST', '', { email: 'changed@example.com' });
  await call('PATCH', id, { is_active: false });
  await call('DELETE', id);
  const ended = await run(['changes', String(id).toUpperCase()]);

  expect([ended.code, ended.stderr]).toEqual([0, '']);
  expect(linesOf(ended.stdout)).toEqual(await call('GET', `${id}/changes`));
  expect(linesOf(ended.stdout)).toHaveLength(3);
  expect(await run(['changes', randomUUID()])).toEqual(none);
  expect(await run(['get', id])).toEqual(none);
});

test('a user from before the changes has none: exit code 0', async () => {
  const [first] = stage.service.others;
  const front = await startBreaking({
    onResponse: (answer) => ({
      ...answer,
      headers: { ...answer.headers, 'content-length': '2' },
      body: '[]',
    }),
  });
  const ended = await run(['changes', first.id], { USERS_URL: front.url });

  expect(ended).toEqual(silent(0));
});

test('on a terminal they write a table that no value controls, and JSON with --json', async () => {
  const { id } = users.mary ?? {};
  const show = async (...words: readonly string[]) =>
    (await run(words, { PATH: process.env.PATH, TERM: 'xterm' }, { runBy: TERMINAL })).stdout;
  const [change] = await call('GET', `${id}/changes`);
  const table = [
    ['id', id],
    ['email', 'Mary.Shelley@example.com'],
    ['full_name', 'Mary\\u{1b}[2J\\u{202e}\\u{9b}Shelley'],
    ['is_active', true],
    ['created_at', users.mary?.created_at],
    ['updated_at', users.mary?.updated_at],
  ].map(([name, value]) => `${String(name).padEnd(10)}  ${value}\r\n`);

  expect(await show('get', String(id))).toBe(table.join(''));
  const json = JSON.stringify(users.mary).replace('\u009b', '\\u009b');
  expect(await show('get', String(id), '--json')).toBe(`${json}\r\n`);
  expect((await show('changes', String(id))).split('\r\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['time', 'type', 'version', 'changed', 'request_id', 'actor'],
    [change.time, 'user.created', '1', change.data.request_id, 'command'],
    [''],
  ]);
  expect(await show('changes', String(id), '--json')).toBe(`${JSON.stringify(change)}\r\n`);
});

test.each<[readonly string[], RegExp]>([
  [['get'], /^Name one user\. See: users get --help\n$/],
  [['get', 'a', '--by', 'name'], /^--by must be id or email or external_id\. /],
  [['get', 'a', '--by', 'id'], /^query \/ids\/0 must /],
  [['get', '@@', '--by', 'email'], /^query \/email must /],
  [['get', 'a'.repeat(300)], /^422 Unprocessable Entity: /],
  [['changes', 'mary@example.com'], /^The id must be a UUID\n$/],
])('users %j is wrong use: exit code 2', async (words, message) => {
  expect(await run(words)).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
});
