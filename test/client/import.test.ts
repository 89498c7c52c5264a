import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startAcceptable } from '../accept/stage.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startHttpFront } from '../stage/http-front.ts';
import { until } from '../stage/until.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { lastLine, linesOf, runCommand, silent, toLines, usersNamed, variablesFor } from './command.ts';

const stage = acceptableUnderTest();
const { files, call, run, start, startBreaking } = stage;

/** The users whose emails begin with `name`. */
async function stored(name: string): Promise<readonly string[]> {
  const { stdout } = await run(['export']);
  return linesOf(stdout)
    .map(({ email }) => String(email))
    .filter((email) => email.startsWith(`${name}.`));
}

type Problem = {
  readonly status: number;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
};
const pointersOf = (problem: unknown) =>
  (problem as Problem).errors?.map(({ pointer, detail }) => `${pointer} ${detail}`);

/** The last lines of an import that has sent nothing. */
const gaveUp = [
  'Gave up at line 1. Run the same command again to continue.',
  'created 0, exists 0, refused 0',
];

describe('users import', () => {
  test('each line is created, exists or is refused, and refused lines are named with their problem', async () => {
    const nested = `${'['.repeat(25_000)}${']'.repeat(25_000)}`;
    const lines = [
      '\ufeff{"email":"lines.1@example.com","full_name":"One"}\r',
      '',
      '{"email":"LINES.1@example.com"}',
      // Later lines have places of two digits in their batch. Their pointers are those of the line.
      ...Array(10).fill('{"email":"ada@example.com"}'),
      '{"email":"lines.2@example.com"',
      '   ',
      '["lines.3@example.com"]',
      'null',
      '{"email":"nobody"}',
      '{"full_name":17}',
      '{"email":"lines.\\ud800@example.com"}',
      Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
      `{"email":"lines.${'x'.repeat(1_100_000)}@example.com"}`,
      `{"email":"lines.4@example.com","more":"${'x'.repeat(100_000)}"}`,
      `{"email":"lines.5@example.com","more":${nested}}`,
      '{"email":"lines.6@example.com","id":"7","is_active":false,"__proto__":{"a":1}}',
      '{"email":"lines.7@example.com","is_active":true,"full_name":null}',
    ];
    const content = lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]);
    // The last line has no end.
    const file = files.write('lines.ndjson', Buffer.concat(content.slice(0, -1)));
    const first = await run(['import', file, '--rejected', files.pathOf('rejected')]);
    const rejected = files.lines('rejected') as { line: number; problem: Problem }[];
    const again = await run(['import', file]);

    const names = 'id (1 line, first line 25), __proto__ (1 line, first line 25)';
    const notStored = `The service does not store these members as given: ${names}`;
    expect(first).toEqual(silent(3, notStored, 'created 3, exists 11, refused 10'));
    const byLine = rejected.toSorted((a, b) => Number(a.line) - Number(b.line));
    expect(byLine.map(({ line, problem }) => [line, problem.status, pointersOf(problem)])).toEqual([
      [14, 422, ['# must be valid JSON']],
      [16, 422, ['# must be an object']],
      [17, 422, ['# must be an object']],
      [18, 422, [expect.stringMatching(/^#\/email must have exactly one @/)]],
      [19, 422, ['#/email must be present', '#/full_name must be a string']],
      [20, 422, [expect.stringMatching(/^#\/email must/)]],
      [21, 422, ['# must be UTF-8']],
      [22, 413, undefined],
      [23, 413, undefined],
      [24, 422, ['# must not be nested so deeply']],
    ]);
    expect(rejected.every(({ problem }) => 'title' in problem && 'instance' in problem)).toBe(true);
    expect([again.code, lastLine(again.stderr)]).toEqual([3, 'created 3, exists 11, refused 10']);
    expect(again.stderr.split('\n').filter((line) => line.startsWith('{"line":'))).toHaveLength(10);
    // Two batches are sent at the same time.
    expect((await stored('lines')).toSorted()).toEqual([1, 6, 7].map((n) => `lines.${n}@example.com`));
  });

  test('a user that was created and has since been deleted counts as refused, with its problem', async () => {
    const file = files.write('deleted.ndjson', usersNamed('deleted', 2));
    await run(['import', file]);
    const [{ id }] = await call('GET', '?email=deleted.1@example.com');
    await call('DELETE', id);
    const again = await run(['import', file]);

    expect([again.code, lastLine(again.stderr)]).toEqual([3, 'created 1, exists 0, refused 1']);
    expect(JSON.parse(again.stderr.split('\n')[0] ?? '')).toMatchObject({
      line: 1,
      problem: { type: 'urn:svc:error:gone_error', status: 410 },
    });
  });

  test('a file without a line is exit code 2, or 0 with --allow-empty, and - reads standard input', async () => {
    const empty = await run(['import', files.write('empty', '')]);
    const allowed = await run(['import', files.write('blank', '\n \n'), '--allow-empty']);
    // Two batches of the same lines.
    const input = usersNamed('input', 100).repeat(2);
    const piped = await run(['import', '-'], {}, { input });

    const none = 'created 0, exists 0, refused 0';
    expect(empty).toEqual(silent(2, 'The file has no lines. If that is right, add --allow-empty.', none));
    expect(allowed).toEqual(silent(0, 'The file has no lines.', none));
    expect(piped).toEqual(silent(0, 'created 100, exists 100, refused 0'));
    expect(await stored('input')).toHaveLength(100);
  });

  test('inactive lines, existing lines and their users are reported, and a second run is the same', async () => {
    const one = await call('POST', '', { email: 't1@x', external_id: 't1' });
    const two = await call('POST', '', { email: 't2@x', external_id: 't2' });
    const three = await call('POST', '', { email: 't3@x' });
    const lines = [
      { email: 's1@x', is_active: false, external_id: 's1' },
      { email: 's2@x', is_active: null },
      { email: 's3@x', is_active: 'false' },
      { email: 'T1@x', external_id: 't1' },
      { email: 't1@x' },
      { email: 't3@x', external_id: 'new', is_active: false },
      { email: 'else@x', external_id: 't2' },
      { email: 't1@x', external_id: 't2' },
      { email: 't3@x', external_id: 't2' },
      { email: 't2@x', external_id: 'T2' },
    ];
    const file = files.write('states', toLines(lines));
    const [refused, existing] = [files.pathOf('states-rejected'), files.pathOf('existing')];
    const args = ['import', file, '--rejected', refused, '--existing', existing];
    const first = await run(args);
    const again = await run(args);
    const [state] = await call('GET', '?external_id=s1');

    const left = `Lines with "is_active": false whose users are active: 1 (listed in ${existing})`;
    expect(first).toEqual(silent(3, left, 'created 2, exists 4, refused 4'));
    expect(again).toEqual(first);
    expect(state.is_active).toBe(false);
    expect(await call('GET', `${state.id}/changes`)).toHaveLength(2);
    const both = { email: one.id, external_id: one.id };
    expect(files.lines('existing')).toEqual([
      { line: 4, email: 'T1@x', external_id: 't1', taken: both },
      { line: 5, email: 't1@x', taken: { email: one.id } },
      { line: 6, email: 't3@x', external_id: 'new', taken: { email: three.id }, is_active: true },
      { line: 7, email: 'else@x', external_id: 't2', taken: { external_id: two.id } },
    ]);
    const rejected = files.lines('states-rejected');
    expect(rejected.map(({ line, email, external_id }) => [line, email, external_id])).toEqual([
      [3, 's3@x', undefined],
      [8, 't1@x', 't2'],
      [9, 't3@x', 't2'],
      [10, 't2@x', 'T2'],
    ]);
    expect(pointersOf(rejected[0]?.problem)).toEqual(['#/is_active must be a boolean']);

    // Another caller activates the user between the create and the update.
    await call('PATCH', state.id, { is_active: true });
    const changed = await run(args);
    expect([changed.code, lastLine(changed.stderr)]).toEqual([3, 'created 2, exists 4, refused 4']);
    const [active] = files.lines('existing');
    expect(active).toMatchObject({ line: 1, taken: { email: state.id }, is_active: true });
    const only = await run(['import', '-'], {}, { input: `${JSON.stringify(lines[0])}\n` });
    expect([only.code, lastLine(only.stderr)]).toEqual([3, 'created 0, exists 1, refused 0']);
  });

  test('a batch over the body limit of the service is halved, down to the line that is too long', async () => {
    const small = await forThisTest(startAcceptable, { SVC_BODY_LIMIT: '2048' });
    const long = `{"email":"long@example.com","more":"${'x'.repeat(3000)}"}\n`;
    const file = files.write('limit.ndjson', usersNamed('limit', 150) + long + usersNamed('other', 50));
    const variables = await variablesFor(small);
    const first = await runCommand(['import', file], variables);
    const again = await runCommand(['import', file], variables);
    const { stdout } = await runCommand(['export'], variables);

    expect([first.code, lastLine(first.stderr)]).toEqual([3, 'created 200, exists 0, refused 1']);
    expect(first.stderr).toMatch(
      /^\{"line":151,"email":"long@example.com","problem":\{"type":"urn:svc:error:payload_too_large_error",/,
    );
    expect(again).toEqual(first);
    expect(linesOf(stdout)).toHaveLength(203);
  });

  const reported = [
    'The service is unavailable (503). Trying again for up to 5 minutes.',
    'The service responds again.',
  ];
  test.each<[string, number, readonly string[]]>([
    ['for seconds delays the import, and is reported once', 3000, reported],
    ['for one response is not reported', 0, []],
  ])('a service that is unavailable %s', async (_, milliseconds, messages) => {
    let begin: number | undefined;
    const front = await startBreaking({
      onResponse: (answer) => {
        const isFirst = begin === undefined;
        begin ??= performance.now();
        const isAway = isFirst || performance.now() - begin < milliseconds;
        return isAway ? { status: 503, headers: {}, body: '' } : answer;
      },
    });
    const input = usersNamed(`patient.${milliseconds}`, 500);
    const ended = await run(['import', '-'], { USERS_URL: front.url }, { input });

    expect(ended).toEqual(silent(0, ...messages, 'created 500, exists 0, refused 0'));
  });

  test('an expired token ends the import with the line, and another token continues', async () => {
    const expired = await stage.service.tokens.issueToken({ clientId: 'command', expiresIn: -10 });
    const front = await startBreaking({
      onRequest: (request) => {
        if (front.seen.length <= 5) return request;
        const fields = request.fields.filter(([name]) => name.toLowerCase() !== 'authorization');
        return { ...request, fields: [...fields, ['authorization', `Bearer ${expired}`]] };
      },
    });
    const file = files.write('expiring.ndjson', usersNamed('expiring', 3000));
    const first = await run(['import', file], { USERS_URL: front.url });
    const before = await stored('expiring');
    const again = await run(['import', file]);

    const [, line] =
      /^401 Unauthorized: the service does not accept the token, which may have expired \(request \S+\)\nGave up at line (\d+)\. Run the same command again to continue\.\ncreated 500, exists 0, refused 0\n$/.exec(
        first.stderr,
      ) ?? [];
    expect([first.code, before.length]).toEqual([1, 500]);
    expect(Number(line)).toBeGreaterThan(100);
    expect(Number(line)).toBeLessThanOrEqual(501);
    expect(again).toEqual(silent(0, 'created 3000, exists 0, refused 0'));
    expect(await stored('expiring')).toHaveLength(3000);
  });

  test('tokens come by client credentials, and no secret is printed', async () => {
    const variables = {
      USERS_URL: stage.service.url,
      USERS_TOKEN_URL: stage.service.credentials.ACCEPT_TOKEN_URL,
      USERS_CLIENT_ID: 'command',
      USERS_CLIENT_SECRET: 'kept-safe',
      USERS_SCOPE: 'users.read users.write',
      USERS_AUDIENCE: 'users',
    };
    const file = files.write('credentials.ndjson', usersNamed('credentials', 10));
    const ended = await runCommand(['import', file], variables);
    const scopeless = await runCommand(['import', file], { ...variables, USERS_SCOPE: 'users.read' });
    const refusing = await forThisTest(startHttpFront, async () => ({
      status: 401,
      headers: { 'content-type': 'application/json' },
      body: '{"error":"invalid_client"}',
    }));
    const tokenUrl = `${refusing.url}/token`;
    const refused = await runCommand(['import', file], { ...variables, USERS_TOKEN_URL: tokenUrl });

    expect(ended).toEqual(silent(0, 'created 10, exists 0, refused 0'));
    expect(scopeless.code).toBe(1);
    expect(scopeless.stderr).toMatch(/^403 Forbidden: the token lacks the role .*\nGave up at line 1\. /);
    const fault = `unexpected response 401: no token from ${tokenUrl}: invalid_client`;
    expect(refused).toEqual(silent(1, fault, ...gaveUp));
  });

  test('Ctrl-C stops after the batches in progress, and the same command continues', async () => {
    const front = await startBreaking({ onResponse: (answer) => sleep(300, answer) });
    const file = files.write('stopped.ndjson', usersNamed('stopped', 3000));
    const running = start(['import', file], { USERS_URL: front.url });
    await until('a batch is sent', () => front.seen.length >= 6);
    running.signal('SIGINT');
    const first = await running.ended;
    const before = await stored('stopped');
    const again = await run(['import', file]);

    const stopped = `Stopped at line ${before.length + 1}. Run the same command again to continue.`;
    expect(first).toEqual(silent(1, stopped, `created ${before.length}, exists 0, refused 0`));
    expect(before.length).toBeLessThan(3000);
    expect(again).toEqual(silent(0, 'created 3000, exists 0, refused 0'));
    expect(await stored('stopped')).toHaveLength(3000);
  });

  test('a full disk under the refused lines ends the import, and names the file', async () => {
    const ended = await run(['import', files.write('bad', 'bad\n{}\n'), '--rejected', '/dev/full']);

    const fault = '/dev/full cannot be written: ENOSPC: no space left on device, write';
    expect(ended).toEqual(silent(1, fault, ...gaveUp));
  });
});

test.each<[string[], string | RegExp, NodeJS.ProcessEnv?]>([
  [[], 'Usage: users <command> …'],
  [['remove'], 'There is no such command. See: users --help'],
  [['import'], 'Name one file, or - for standard input. See: users import --help'],
  [['import', 'a', 'b'], 'Name one file, or - for standard input. See: users import --help'],
  [['import', 'a', '--token=secret'], "Unknown option '--token'. See: users import --help"],
  [['export', 'secret'], 'Unexpected argument. See: users export --help'],
  [
    ['import', 'a', '--rejected', 'b', '--existing', 'b'],
    '--rejected and --existing must name two files. See: users import --help',
  ],
  [['diff'], 'Name one file. See: users diff --help'],
  [['diff', '/none'], "/none cannot be read: ENOENT: no such file or directory, open '/none'"],
  [['follow'], '--cursor is missing. See: users follow --help'],
  [['import', '/'], '/ cannot be read: it is a directory'],
  [['import', '/none'], "/none cannot be read: ENOENT: no such file or directory, open '/none'"],
  [['import', '/dev/null', '--rejected', '/none/x'], /^\/none\/x cannot be written: ENOENT/],
  [
    ['import', import.meta.filename, '--rejected', import.meta.filename],
    '<file> and --rejected must name two files. See: users import --help',
  ],
  [['follow', '--cursor', '/none'], /^\/none cannot be read: ENOENT.*\. Create it with: users export/],
  [['export', '--url', 'ftp://a'], '--url or USERS_URL must be an http(s) URL without credentials'],
  [['export', '--url', 'http://a:secret@b'], '--url or USERS_URL must be an http(s) URL without credentials'],
  ...['/api/v1/users/', '/api/v1/users', '/api/v1', '/api/v1/users/batch', '/?limit=1', '#x'].map(
    (end): [string[], string] => [
      ['export', '--url', `http://a${end}`],
      '--url or USERS_URL must be the base URL, without /api/v1/users/ and without a query',
    ],
  ),
  [['export'], 'set --url or USERS_URL to the base URL of the service', { USERS_URL: '' }],
  [['export'], 'set either USERS_TOKEN or USERS_TOKEN_URL', { USERS_TOKEN_URL: 'http://a' }],
  [['export'], /^set USERS_TOKEN, or USERS_TOKEN_URL, /, { USERS_TOKEN: '' }],
  [['export'], 'USERS_TOKEN must be a token, without spaces or line ends', { USERS_TOKEN: 'two words' }],
])('users %j is a usage error: exit code 2, %s', async (args, message, variables) => {
  const { code, stdout, stderr } = await run(args, variables);
  const wanted = typeof message === 'string' ? message : expect.stringMatching(message);

  expect([code, stdout, stderr.split('\n')[0]]).toEqual([2, '', wanted]);
});

test.each([
  ...['--help', 'import --help', 'export --help', 'diff --help', 'get --help', 'relay --help'],
  ...['follow -h', 'changes -h'],
])('users %s prints its usage: exit code 0', async (words) => {
  const stdout = expect.stringMatching(/^Usage: users /);

  expect(await runCommand(words.split(' '))).toEqual({ code: 0, stdout, stderr: '' });
});
