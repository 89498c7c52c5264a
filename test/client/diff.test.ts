import { beforeAll, expect, test } from 'vitest';
import { blockOf } from '../stage/page-blocks.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { lastLine, linesOf, silent, toLines, usersNamed } from './command.ts';

const { files, run, startBreaking } = acceptableUnderTest();
let exported: readonly Record<string, unknown>[];

beforeAll(async () => {
  const named =
    '{"email":"Named@example.com","full_name":"N","external_id":"HR \\"1\\"","is_active":false}\n';
  await run(['import', '-'], {}, { input: usersNamed('diff', 2100) + named });
  await run(['export', '--out', files.pathOf('exported')]);
  exported = files.lines('exported');
});

const write = (lines: readonly object[]) => files.write('lines', toLines(lines));
const diff = async (lines: readonly object[], ...options: readonly string[]) => {
  const { code, stdout, stderr } = await run(['diff', write(lines), ...options]);
  return { code, differences: linesOf(stdout), last: lastLine(stderr) };
};

test('an export equals the service, in any order and form of ids and times', async () => {
  const other = exported.toReversed().map((user) => ({
    ...user,
    id: String(user.id).toUpperCase(),
    created_at: String(user.created_at).replace('Z', '+00:00'),
    external_id: user.external_id ?? null,
    column: 17,
  }));
  const last = `equal ${exported.length}, changed 0, missing 0, additional 0`;

  expect(await diff(exported)).toEqual({ code: 0, differences: [], last });
  expect(await diff(other)).toEqual({ code: 0, differences: [], last });
});

test('lines are matched by id, else external id, else email, and compared by their members', async () => {
  // Batches are stored in any order.
  const named = exported.find(({ external_id }) => external_id !== undefined) ?? {};
  const [one, two, three, ...others] = exported.filter((user) => user !== named);
  const none = '00000000-0000-0000-0000-000000000000';
  const lines = [
    { ...one, email: 'other@example.com', is_active: false },
    { id: none, email: two?.email },
    { external_id: named.external_id, email: 'named@example.com', is_active: true },
    { external_id: 'hr "1"' },
    { email: String(three?.email).toUpperCase(), full_name: null },
    { email: 'nobody@example.com' },
    ...others.slice(0, -1).map(({ id, full_name }) => ({ id, full_name })),
  ];
  const shown = JSON.parse(blockOf('infra/docs/import-export.md', 'Prove'));
  const found = [
    { ...shown, line: 1, id: one?.id, members: ['email', 'is_active'] },
    { line: 2, id: none, difference: 'missing' },
    { line: 3, external_id: 'HR "1"', difference: 'changed', members: ['email', 'is_active'] },
    { line: 4, external_id: 'hr "1"', difference: 'missing' },
    {
      line: 5,
      email: String(three?.email).toUpperCase(),
      difference: 'changed',
      members: three?.full_name === null ? ['email'] : ['email', 'full_name'],
    },
    { line: 6, email: 'nobody@example.com', difference: 'missing' },
  ];
  const additional = [two, others.at(-1)].map((user) => ({ id: user?.id, difference: 'additional' }));
  const equal = others.length - 1;

  expect(await diff(lines)).toEqual({
    code: 3,
    differences: [...found, ...additional],
    last: `equal ${equal}, changed 3, missing 3, additional 2`,
  });
  expect(await diff(lines, '--subset')).toEqual({
    code: 3,
    differences: found,
    last: `equal ${equal}, changed 3, missing 3, additional 0`,
  });
  expect(await diff(lines.slice(6), '--subset')).toMatchObject({ code: 0, differences: [] });
});

type WrongFile = [string, (users: typeof exported) => readonly unknown[], RegExp];
const wrongTime = (values: object): WrongFile => [
  `a time ${JSON.stringify(values)}`,
  () => [{ email: 'a@b' }, { email: 'c@d', ...values }],
  RegExp(`^Line 2 is not a user: ${Object.keys(values)} must be a time with an offset$`),
];

test.each<WrongFile>([
  ['two lines of one id', ([one]) => [one, one], /^Lines 1 and 2 are of one user$/],
  ['two lines of one email', () => [{ email: 'a@b' }, {}, { email: 'A@b' }], /^Line 2 is not a user: /],
  ['two users of a list', ([one]) => [[one, one]], /^Lines 1 \(index 0\) and 1 \(index 1\) are of one user$/],
  ['an id in two cases', ([one]) => [one, { id: String(one?.id).toUpperCase() }], /^Lines 1 and 2 /],
  ['an id and an email of one user', ([a]) => [{ id: a?.id }, { email: a?.email }], /^Lines 1 and 2 /],
  ['a line without an identifier', () => [{ full_name: 'Ada' }], /^Line 1 is not a user: /],
  ['an id that is no UUID', () => [{ id: 'k1', email: 'a@b' }], /^Line 1 is not a user: id must be a UUID$/],
  ['a number', () => [17], /^Line 1 is not a user: /],
  ...[
    ...[{ created_at: '2026-01-02T00:00:00' }, { updated_at: '2026-01-02' }, { created_at: '' }],
    ...[{ created_at: '2026-01-02 10:00-05-06' }, { created_at: 'yesterday' }],
    ...[{ created_at: 1767312000000 }, { updated_at: true }],
  ].map(wrongTime),
  ['a file without a line', () => [], /lines has no lines\. If that is right, add --allow-empty\.$/],
])('%s: exit code 2, and nothing on standard output', async (_, lines, message) => {
  expect(await diff(lines(exported) as object[])).toEqual({
    code: 2,
    differences: [],
    last: expect.stringMatching(message),
  });
});

test.each([
  ['5', '# must be an object'],
  ['[]', '# must be an object'],
  ['{"email":"torn@example.com"', '# must be valid JSON'],
  ['{"email":"a@b","is_active":"true"}', '#/is_active must be a boolean'],
  ['{"email":"a@b","score":1e999}', '# must not have a number beyond 1.8e308'],
  ['{"email":5}', '#/email must be a string'],
  ['{"email":""}', '#/email must have 1 to 255 characters'],
  [
    '{"email":"nobody"}',
    '#/email must have exactly one @ with at least one character on each side, and no white space or control characters',
  ],
  ['{"email":"a@b","external_id":"\\n"}', '#/external_id must have no control characters'],
  ['{"email":"a@b","external_id":"\\ud800"}', '#/external_id must have no U+0000 and no lone surrogate'],
  [`{"email":"a@b","x":"${'y'.repeat(1_048_576)}"}`, 'The line is too long.'],
])('the line %.60s is not a user, for the reason of import', async (line, fault) => {
  const file = files.write('reasons', `{"email":"ada@example.com"}\n${line}\n`);
  const compared = await run(['diff', file]);
  await run(['import', file, '--rejected', files.pathOf('rejected')]);
  const [{ problem } = {}] = files.lines('rejected') as {
    problem?: { detail: string; errors?: { pointer: string; detail: string }[] };
  }[];
  const faults = problem?.errors?.map(({ pointer, detail }) => `${pointer} ${detail}`) ?? [problem?.detail];

  expect(faults).toContain(fault);
  expect(compared).toEqual(silent(2, `Line 2 is not a user: ${fault.replace(/^#\/?/, '').trim()}`));
});

test('times with an offset are compared as instants in every zone, with the digits that are written', async () => {
  const [{ id, created_at } = {}] = exported;
  const time = Date.parse(String(created_at));
  const text = new Date(time).toISOString();
  const [one, two] = [text.replace('T', ' '), new Date(time + 19_800_000).toISOString()];
  const equal = [
    one.replace('Z', '+00'),
    one.replace('Z', ' UTC'),
    two.replace('Z', '+0530'),
    two.replace('Z', '+05:30'),
    text.replace('Z', '000Z'),
    text.toLowerCase(),
    null,
  ];
  for (const given of equal)
    expect(
      await run(['diff', write([{ id, created_at: given }]), '--subset'], { TZ: 'America/New_York' }),
      String(given),
    ).toMatchObject({ code: given === null ? 3 : 0 });
  for (const given of [text.replace('Z', '5Z'), text.replace('Z', '000001+00:00')])
    expect(await diff([{ id, created_at: given }], '--subset')).toMatchObject({ code: 3 });
});

test('members that are not used are named once, with their first line', async () => {
  const [one, two, three] = exported;
  const lines = [{ id: one?.id }, { id: two?.id, column: 1, other: 2 }, { id: three?.id, column: null }];
  const { stderr } = await run(['diff', write(lines), '--subset']);

  expect(stderr).toBe(
    'Members that are not used: column (first line 2), other (first line 2)\n' +
      'equal 3, changed 0, missing 0, additional 0\n',
  );
});

test('with --allow-empty, a file without a line has no user of the service', async () => {
  expect(await diff([], '--allow-empty', '--subset')).toMatchObject({ code: 0, differences: [] });
  expect(await diff([], '--allow-empty')).toMatchObject({
    code: 3,
    last: `equal 0, changed 0, missing 0, additional ${exported.length}`,
  });
});

test.each<[string, (users: typeof exported) => readonly object[], RegExp, string]>([
  ['values', (users) => users, /"User /g, '"Name '],
  ['an email', (users) => users.map(({ email }) => ({ email })), /"diff\.1@/, '"gone.1@'],
])('a difference in %s that is gone when the user is read again is not one', async (_, lines, from, to) => {
  let isWalked = false;
  const front = await startBreaking({
    onResponse: (answer, { target }) => {
      // The last page of the walk, and then the users that are read again.
      if (/[?&](ids|email)=/.test(target)) isWalked = true;
      return isWalked ? answer : { ...answer, body: answer.body.replace(from, to) };
    },
  });
  const { code, stderr } = await run(['diff', write(lines(exported))], { USERS_URL: front.url });

  expect(code).toBe(0);
  expect(lastLine(stderr)).toBe(`equal ${exported.length}, changed 0, missing 0, additional 0`);
});
