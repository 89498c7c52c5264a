import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { startAcceptable, startBreaking } from '../accept/stage.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { callAs, linesOf, openFiles, runCommand, toLines, variablesFor } from './command.ts';

const files = openFiles();
afterAll(files.remove);
const common = forAllTests(startAcceptable);

type Line = Readonly<Record<string, unknown>>;

/** A service with these users, and the command that makes it equal to a file. */
async function startWith(given: readonly Line[], shared?: Awaited<ReturnType<typeof startAcceptable>>) {
  const service = shared ?? (await forThisTest(startAcceptable));
  const variables = await variablesFor(service);
  const call = (method: string, path?: string, body?: object) => callAs(variables, method, path, body);
  // The stage has three users without external ids.
  for (const { id } of shared ? [] : await call('GET')) await call('DELETE', id);
  await runCommand(['import', '-'], variables, { input: toLines(given) });
  const read = async (): Promise<readonly Line[]> =>
    linesOf((await runCommand(['export'], variables)).stdout);
  const sync = async (content: string | readonly unknown[], ...words: readonly string[]) => {
    const file = files.write('lines', typeof content === 'string' ? content : toLines(content as object[]));
    const rejected = files.pathOf('rejected');
    const args = ['sync', file, '--rejected', rejected, '--max-deactivated', '100%', ...words];
    const { code, stdout, stderr } = await runCommand(args, variables);
    const refused = files.lines('rejected').map(({ line, problem }) => {
      const { status, errors } = problem as { status: number; errors?: { pointer: string }[] };
      return `${line}: ${status} ${errors?.map(({ pointer }) => pointer).join()}`;
    });
    refused.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
    const messages = stderr.split('\n').slice(0, -1);
    return { code, planned: linesOf(stdout), messages, end: [code, ...refused, messages.at(-1)] };
  };
  return {
    service,
    variables,
    call,
    sync,
    read,
    /** The users, by external id, else by email: email, name, state. */
    async stored() {
      const entries = (await read()).map(({ external_id, email, full_name, is_active }) => [
        external_id ?? email,
        [email, full_name, is_active],
      ]);
      return Object.fromEntries(entries);
    },
    async changes() {
      return (await call('GET', 'changes?limit=1000')).length;
    },
  };
}

const user = (n: number | string, more: Line = {}) => ({
  external_id: `u${n}`,
  email: `u${n}@example.com`,
  full_name: `User ${n}`,
  is_active: true,
  ...more,
});
const last = (created: number, updated: number, deactivated: number, equal: number, refused: number) =>
  `created ${created}, updated ${updated}, deactivated ${deactivated}, equal ${equal}, refused ${refused}`;

test('users become equal to their lines, each by one write, and a second run writes nothing', async () => {
  const { sync, stored, changes } = await startWith(
    [1, 2, 3, 4, 5, 6, 7].map((n) => user(n, { is_active: n !== 6 })),
  );
  const lines = [
    user(1, { email: 'U1@Example.com' }),
    user(2, { full_name: null, id: 'x', created_at: 'y' }),
    user(3, { email: 'new3@example.com', full_name: 'New', is_active: false }),
    { external_id: 'u4', email: null, is_active: null },
    { external_id: 'u5', full_name: 'Only this' },
    user(6),
    { external_id: 'u8', email: 'u8@example.com' },
    user(9, { is_active: false }),
    { external_id: 'u8', email: 'u8@example.com' },
  ];
  const before = await changes();
  const first = await sync(lines);
  const after = await changes();
  const again = await sync(lines);

  const unused = 'Members that are not used: id (first line 2), created_at (first line 2)';
  expect(first).toEqual({
    code: 0,
    planned: [],
    messages: [unused, first.end[1]],
    end: [0, last(2, 3, 1, 2, 0)],
  });
  // A new inactive user has two changes.
  expect(after - before).toBe(7);
  expect(await stored()).toEqual({
    u1: ['u1@example.com', 'User 1', true],
    u2: ['u2@example.com', null, true],
    u3: ['new3@example.com', 'New', false],
    u4: ['u4@example.com', 'User 4', true],
    u5: ['u5@example.com', 'Only this', true],
    u6: ['u6@example.com', 'User 6', true],
    u7: ['u7@example.com', 'User 7', true],
    u8: ['u8@example.com', null, true],
    u9: ['u9@example.com', 'User 9', false],
  });
  expect([...again.end, await changes()]).toEqual([0, last(0, 0, 0, 8, 0), after]);
});

test('a dry run writes nothing, and lists each intended write without values', async () => {
  const { sync, read, call } = await startWith([1, 2, 3, 4, 5].map((n) => user(n, { is_active: n !== 3 })));
  const before = await read();
  const id = (n: number) => before.find(({ external_id }) => external_id === `u${n}`)?.id;
  const off = user(1, { email: 'x@y', is_active: false });
  const lines = [off, user(2, { full_name: null }), user(3), user(4), user(9)];
  const words = ['--deactivate-missing', '--dry-run'];
  const planned = [
    { line: 1, id: id(1), action: 'deactivate', members: ['email', 'is_active'] },
    { line: 2, id: id(2), action: 'update', members: ['full_name'] },
    { line: 3, id: id(3), action: 'reactivate', members: ['is_active'] },
    { line: 5, action: 'create', members: ['email', 'full_name', 'external_id', 'is_active'] },
    { id: id(5), action: 'deactivate', members: ['is_active'] },
  ];
  const { planned: found, end } = await sync(lines, ...words);
  const json = await sync(JSON.stringify([user(2, { full_name: 'x' })]), '--dry-run');
  const filed = await sync(lines, '--deactivate-missing', '--plan', files.pathOf('plan'));

  const byAction = (all: readonly Line[]) =>
    all.toSorted((a, b) => Number(a.line ?? 99) - Number(b.line ?? 99));
  expect([byAction(found), ...end]).toEqual([planned, 0, last(1, 2, 2, 1, 0)]);
  expect(json.planned).toEqual([{ line: 1, index: 0, id: id(2), action: 'update', members: ['full_name'] }]);
  expect([filed.planned, byAction(files.lines('plan')), filed.end]).toEqual([[], planned, end]);
  expect((await call('GET', String(id(5)))).is_active).toBe(false);
});

test('lines that cannot be matched, differ, or have taken values are refused, and the others are written', async () => {
  const { sync, stored } = await startWith([
    ...[1, 2, 3, 4, 5].map((n) => user(n)),
    { email: 'free@example.com' },
    { email: 'off@example.com', is_active: false },
  ]);
  const lines = [
    { email: 'a@example.com' },
    user(1, { external_id: null }),
    user(1, { full_name: 'A' }),
    user(2, { full_name: 'A' }),
    user(2, { full_name: 'B' }),
    user(2, { full_name: 'A' }),
    user(8, { email: 'FREE@example.com' }),
    user(9, { email: 'off@example.com' }),
    user(10, { email: 'u5@example.com' }),
    user(3, { email: 'u5@example.com' }),
    user(4, { email: 'nobody' }),
    user(11, { full_name: 5 }),
    { external_id: 'u12' },
    user(13, { is_active: 'no' }),
    user(14),
  ];
  const refused = [
    ...[1, 2, 4, 5, 6].map((line) => `${line}: 422 #/external_id`),
    ...[7, 8, 9, 10].map((line) => `${line}: 409 #/email`),
    ...['11: 422 #/email', '12: 422 #/full_name', '13: 422 #/email', '14: 422 #/is_active'],
  ];
  expect((await sync(lines)).end).toEqual([3, ...refused, last(1, 1, 0, 0, 13)]);
  const adopted = await sync(
    [user(8, { email: 'FREE@example.com', full_name: null }), user(9, { email: 'off@example.com' })],
    '--adopt',
  );
  expect(adopted.end).toEqual([3, '2: 409 #/email', last(0, 1, 0, 0, 1)]);
  expect(await stored()).toMatchObject({
    u1: ['u1@example.com', 'A', true],
    u2: ['u2@example.com', 'User 2', true],
    u8: ['free@example.com', null, true],
    u14: ['u14@example.com', 'User 14', true],
    'off@example.com': ['off@example.com', null, false],
  });
});

test('with --by email, a user keeps its external id, and gets one by --adopt only', async () => {
  const without = [{ email: 'free@example.com' }, { email: 'two@example.com' }];
  const { sync, stored } = await startWith([user(1), user(2), ...without]);
  const lines = [
    { email: 'U1@example.com', full_name: 'A' },
    { email: 'u2@example.com', external_id: 'x' },
    { email: 'free@example.com', external_id: 'y' },
    { email: 'two@example.com', external_id: 'u1' },
    { email: 'new@example.com', external_id: 'z' },
    { external_id: 'w' },
  ];
  const by = ['--by', 'email'];
  const taken = (line: number) => `${line}: 409 #/external_id`;
  const first = await sync(lines, ...by);
  const adopted = await sync(lines, ...by, '--adopt');

  expect(first.end).toEqual([3, taken(2), taken(3), taken(4), '6: 422 #/email', last(1, 1, 0, 0, 4)]);
  expect(adopted.end).toEqual([3, taken(2), taken(4), '6: 422 #/email', last(0, 1, 0, 2, 3)]);
  expect(await stored()).toEqual({
    u1: ['u1@example.com', 'A', true],
    u2: ['u2@example.com', 'User 2', true],
    y: ['free@example.com', null, true],
    'two@example.com': ['two@example.com', null, true],
    z: ['new@example.com', null, true],
  });
});

const many = (count: number, more: Line = {}) => Array.from({ length: count }, (_, n) => user(n + 1, more));

test('missing users are deactivated last, and a line protects its user if its external id can be read', async () => {
  const given = [...many(6), user('x', { external_id: 'y1' }), { email: 'none@example.com' }];
  const { sync, stored } = await startWith(given);
  const csv = (...records: readonly string[]) => `external_id,email,is_active\n${records.join('\n')}\n`;
  const matched = ['u1,u1@example.com,true', 'u2,u2@example.com,false', 'u3,u3@example.com,maybe'];
  const good = [...matched, 'u4,nobody,true'];
  const words = ['--deactivate-missing', '--prefix', 'u'];
  const torn = [
    await sync(csv(...good, 'u5'), ...words),
    await sync(csv(...good, ',u5@example.com,true'), ...words),
    await sync([...many(2), { external_id: 5 }], ...words),
    await sync(`${toLines(many(2))}{"external_id":"u5\n`, ...words),
  ];
  const fault = 'the external id cannot be read. No missing user is deactivated.';
  expect(torn.map(({ code, messages }) => `${code} ${messages.at(-2)}`)).toEqual(
    [6, 6, 3, 3].map((line) => `3 Line ${line}: ${fault}`),
  );
  expect(Object.values(await stored()).filter((values) => !(values as unknown[])[2])).toHaveLength(0);
  const whole = await sync(csv(...good), ...words);
  expect(whole.end).toEqual([3, '4: 422 #/is_active', '5: 422 #/email', last(0, 0, 3, 1, 2)]);
  const states = Object.entries(await stored()).map(([key, values]) => [key, (values as unknown[])[2]]);
  expect(Object.fromEntries(states)).toEqual({
    ...{ u1: true, u2: false, u3: true, u4: true, u5: false, u6: false },
    ...{ y1: true, 'none@example.com': true },
  });
  expect(await sync([user('x', { external_id: 'y1' })], ...words)).toMatchObject({
    code: 2,
    messages: ['Line 1: the external id does not begin with u', last(0, 0, 0, 0, 0)],
  });
});

test.each([
  ['0', 0, 0],
  ['1', 1, 1],
  ['1', 2, 0],
  ['2%', 1, 1],
  ['2%', 2, 0],
  ['0%', 1, 0],
  ['0.1%', 1, 1],
  ['10%', 3, 3],
  ['10%', 4, 0],
  ['99.99%', 30, 30],
  ['100%', 30, 30],
  ['29', 30, 0],
])(
  'with --max-deactivated %s, a run that would deactivate %d of 30 active users deactivates %d',
  async (max, asked, done) => {
    limits += 1;
    const all = many(30).map((one, n) => ({
      ...one,
      external_id: `l${limits}.${n}`,
      email: `l${limits}.${n}@x`,
    }));
    const off = user('off', { external_id: `l${limits}.off`, email: `l${limits}.off@x`, is_active: false });
    const { sync, changes } = await startWith([...all, off, { email: `l${limits}@x` }], common);
    const before = await changes();
    const half = asked >> 1;
    const lines = all.map((one, n) => ({ ...one, is_active: n >= half })).slice(0, 30 - asked + half);
    const words = ['--deactivate-missing', '--prefix', `l${limits}.`, '--max-deactivated', max];
    const added = user('new', { external_id: `l${limits}.new`, email: `l${limits}.new@x` });
    const { messages, end } = await sync([...lines, added], ...words);

    const isWithin = done === asked;
    expect(end).toEqual(isWithin ? [0, last(1, 0, done, 30 - asked, 0)] : [3, last(0, 0, 0, 30 - asked, 0)]);
    if (!isWithin)
      expect(messages.at(-2)).toMatch(new RegExp(`^${asked} active users .* at most \\d+ may be`));
    expect((await changes()) - before).toBe(isWithin ? done + 1 : 0);
  },
);

let limits = 0;

test('a line without a state leaves it, and --reactivate makes its user active', async () => {
  const { sync } = await startWith([user(1, { is_active: false }), user(2, { is_active: false }), user(3)]);
  const lines = [1, 2, 3].map((n) => ({
    external_id: `u${n}`,
    ...(n === 2 && { full_name: 'New' }),
    is_active: null,
  }));
  const left = 'Inactive users whose lines do not say so: 2. --reactivate makes them active.';

  expect((await sync(lines)).messages).toEqual([left, last(0, 1, 0, 2, 0)]);
  expect((await sync(lines, '--reactivate')).messages).toEqual([last(0, 2, 0, 1, 0)]);
  expect((await sync(lines)).messages).toEqual([last(0, 0, 0, 3, 0)]);
});

test('values pass from user to user in any order of the lines, and two users that swap are refused', async () => {
  const { sync, stored } = await startWith(many(40));
  const moved = many(40).map((one, n) => ({ ...one, email: `u${n + 2}@example.com` }));
  const order = [...moved.keys()].map((n) => (n * 17) % 40);
  const chain = await sync(order.map((n) => moved[n] as Line));
  const swap = await sync([user(1, { email: 'u3@example.com' }), user(2, { email: 'u2@example.com' })]);
  const freed = await sync([user(50, { email: 'u2@example.com' }), user(1, { email: 'a@example.com' })]);

  expect(chain.end).toEqual([0, last(0, 40, 0, 0, 0)]);
  expect(swap.end).toEqual([3, '1: 409 #/email', '2: 409 #/email', last(0, 0, 0, 0, 2)]);
  expect(freed.end).toEqual([0, last(1, 1, 0, 0, 0)]);
  expect(await stored()).toMatchObject({
    u50: ['u2@example.com', 'User 50', true],
    u2: ['u3@example.com', 'User 2', true],
  });
});

test('what other callers write meanwhile is read before it is written, and is never overwritten unread', async () => {
  const { service, variables, call, stored } = await startWith([...many(8), { email: 'u10@example.com' }]);
  const id = async (n: number) => (await call('GET', `?external_id=u${n}`))[0].id;
  const ids = await Promise.all(many(8).map((_, n) => id(n + 1)));
  let isDone = false;
  const seen: string[] = [];
  const front = await forThisTest(startBreaking, service.url, {
    onRequest: (request) => request,
    onResponse: async (answer, { method, target }) => {
      if (method !== 'GET' && method !== 'PATCH') return answer;
      const path = target.split('/').at(-1) ?? '';
      if (method === 'GET' && /^[0-9a-f-]{36}$/.test(path)) seen.push(path);
      // After the plan, before the first user is read again.
      if (target.includes('ids=') && !isDone) {
        isDone = true;
        await call('PATCH', ids[0], { full_name: 'By another' });
        await call('PATCH', ids[1], { full_name: 'Wanted' });
        await call('DELETE', ids[2]);
        await call('PATCH', ids[3], { external_id: 'other' });
        await call('POST', '', { email: 'u9@example.com', external_id: 'u9', full_name: 'By another' });
        await call('PATCH', ids[7], { is_active: false });
      }
      // Between the read and the write of a user.
      if (method === 'GET' && path === ids[4] && seen.filter((one) => one === path).length === 1)
        await call('PATCH', ids[4], { full_name: 'In between' });
      // Between the search for an email and the write of its user.
      if (target.includes('email=u10'))
        for (const { id } of await call('GET', '?email=u10@example.com'))
          await call('PATCH', id, { email: 'moved@example.com' });
      return answer;
    },
  });
  const lines = [...many(7), user(9), user(10)].map((line) => ({ ...line, full_name: 'Wanted' }));
  const file = files.write('meanwhile', toLines(lines));
  const options = ['--adopt', '--deactivate-missing', '--max-deactivated', '100%'];
  const words = ['sync', file, ...options, '--rejected', files.pathOf('none')];
  const { code, stderr } = await runCommand(words, { ...variables, USERS_URL: front.url });
  const entry = (n: number) => [`u${n}`, [`u${n}@example.com`, 'Wanted', true]];

  // The user whose external id was changed has the email of line 4.
  expect([code, stderr]).toEqual([3, `${last(2, 5, 0, 1, 1)}\n`]);
  expect(await stored()).toEqual({
    ...Object.fromEntries([1, 2, 3, 5, 6, 7, 9, 10].map(entry)),
    other: ['u4@example.com', 'User 4', true],
    u8: ['u8@example.com', 'User 8', false],
    'moved@example.com': ['moved@example.com', null, true],
  });
  expect(seen.filter((one) => one === ids[4])).toHaveLength(2);
});

type WrongUse = [string, string, string[], number, RegExp];
const wrongLimit = (max: string): WrongUse => {
  const option = `--max-deactivated=${max}`;
  return [option, '{}', [option], 2, /--max-deactivated must/];
};

test.each<WrongUse>([
  ['a device', '/dev/null', [], 2, /must be a file/],
  ['a file without a user', '\n', [], 2, /has no users/],
  ['a list without a user', '[]', [], 2, /has no users/],
  ['a line that is not a user', '{"external_id":"u1","is_active":0}', [], 2, /"line":1.* refused 1\n$/s],
  ['a header without a record', 'external_id,email\n', [], 2, /has no users/],
  ['CSV without the matched column', 'email,full_name\nu1@example.com,A\n', [], 2, /no column external_id/],
  ['CSV whose last line has no line end', 'external_id,email\nu1,u1@exa', [], 1, /no line end/],
  ['a state that is not named', '{"external_id":"u1","enabled":true}', [], 2, /--columns is_active=enabled/],
  ['a list that is cut off', '[{"external_id":"u1","full_name":"A"},', [], 1, /ends before/],
  ['missing users by email', '{}', ['--by', 'email', '--deactivate-missing'], 2, /needs external ids/],
  ['--prefix without --deactivate-missing', '{}', ['--prefix', 'u'], 2, /--prefix needs/],
  ['an empty prefix', '{}', ['--prefix', '', '--deactivate-missing'], 2, /must not be empty/],
  ...['-1', '101%', '5 %', '1.5', '', '1e3', '100.1%'].map(wrongLimit),
])('%s: nothing is sent', async (_, content, words, code, message) => {
  const file = content === '/dev/null' ? content : files.write('wrong', content);
  const variables = { USERS_URL: 'http://127.0.0.1:1', USERS_TOKEN: 'x' };
  const ended = await runCommand(['sync', file, ...words], variables, { input: '{}' });

  expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(message)]);
});

test('a file that changes while it is read is exit code 1, and nothing is written', async () => {
  const { service, variables, changes } = await startWith(many(3));
  for (const change of [appendFileSync, writeFileSync] as const) {
    const file = files.write('changing', toLines(many(3, { full_name: 'Changed' })));
    const front = await forThisTest(startBreaking, service.url, {
      onResponse: (answer) => {
        change(file, readFileSync(file));
        return answer;
      },
    });
    const before = await changes();
    const { code, stderr } = await runCommand(['sync', file], { ...variables, USERS_URL: front.url });

    expect([code, stderr]).toEqual([1, expect.stringContaining(' was changed while it was read. ')]);
    expect(await changes()).toBe(before);
  }
});
