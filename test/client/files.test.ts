import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { lastLine } from './command.ts';

const { files, run, startBreaking } = acceptableUnderTest();

/** Lines of every kind: odd ends, no users, long ones, more than a batch holds by count and by bytes. */
const ODD_LINES = [
  '\ufeff{"email":"odd.0@example.com","full_name":"Zero"}\r\n\n \t\r\n{"email":"odd.torn@example.com"\n[]\n7\n',
  ...Array.from({ length: 330 }, (_, n) => ` {"email":"odd.${n + 1}@example.com", "more":{"n":${n}.0}}\r\n`),
  Buffer.from('7b22ff227d0a', 'hex'),
  '\ufeff{"id":"k","email":"odd.é@example.com","is_active":"no"}\n',
  `{"email":"odd.${'x'.repeat(1_048_577)}@example.com"}\n`,
  ...Array.from({ length: 9 }, (_, n) => `{"email":"long.${n}@example.com","x":"${'y'.repeat(n * 4000)}"}\n`),
  `{"email":"deep@example.com","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}\n`,
  '{"email":"odd.last@example.com","full_name":null}',
].map((line) => Buffer.from(line));

/** The Idempotency-Key of each batch that the command sends, and its number of items. */
async function keysOf(...words: readonly string[]) {
  const { url, seen } = await startBreaking({});
  const ended = await run(['import', ...words], { USERS_URL: url });
  const batches = seen
    .filter(({ method, target }) => method === 'POST' && target.endsWith('/batch'))
    .map(({ fields, body }) => {
      const key = fields.find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
      return `${JSON.parse(body.toString()).items.length} ${key}`;
    });
  return { keys: batches.sort(), ended };
}

test('JSON lines: batches and keys are those that 1.3.0 makes', async () => {
  const { keys, ended } = await keysOf(files.write('odd.ndjson', Buffer.concat(ODD_LINES)));
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex');

  expect(lastLine(ended.stderr)).toBe('created 341, exists 0, refused 7');
  expect([keys.length, digest]).toEqual([
    8,
    '0ee0f8b45bc3771c1b012fb368489152a2f29fc496b789643a86c7dabc306ff8',
  ]);
});

test('a number that JavaScript cannot hold is one refused line, and the batches around it are those of 1.3.0', async () => {
  const numbers = ['1e999', '-1e999', `1${'0'.repeat(309)}`];
  const bad = [...numbers.map((one) => `"score":${one}`), '"full_name":1e999', '"more":{"a":[null,1e400]}'];
  const good = Array.from({ length: 195 }, (_, n) => `{"email":"score.${n}@example.com","score":1e308}\n`);
  const lines = bad.map((member, n) => `{"email":"bad.${n}@example.com",${member}}\n`);
  const file = (middle: readonly string[]) => [...good.slice(0, 10), ...middle, ...good.slice(10)].join('');
  const { keys, ended } = await keysOf(files.write('score', file(lines)), '--rejected', files.pathOf('no'));
  const before = await keysOf(files.write('score', file(lines.map((line) => line.replace(/,.*/, '}')))));
  const refused = files.lines('no') as { line: number; email: string; problem: { errors: unknown } }[];

  expect(lastLine(ended.stderr)).toBe('created 195, exists 0, refused 5');
  expect(refused.map(({ line, email, problem }) => [line, email, problem.errors])).toEqual(
    bad.map((_, n) => [
      n + 11,
      `bad.${n}@example.com`,
      [{ pointer: '#', detail: 'must not have a number beyond 1.8e308' }],
    ]),
  );
  const second = (all: readonly string[]) => all.filter((key) => key.startsWith('100 '));
  expect([keys.length, before.keys.length]).toEqual([2, 2]);
  expect(second(before.keys)).toEqual(expect.arrayContaining(second(keys)));
});
