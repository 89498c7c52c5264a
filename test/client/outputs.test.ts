import { execFileSync, spawn } from 'node:child_process';
import { closeSync, linkSync, mkdirSync, openSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { until } from '../stage/until.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { lastLine, MAIN, silent, usersNamed } from './command.ts';

const { files, call, run, start, storeHead, variables } = acceptableUnderTest();
const USERS = 1500;

beforeAll(async () => {
  await run(['import', '-'], {}, { input: usersNamed('stored', USERS) });
});

/** Runs a script of bash, in which `users` is the command, in the folder of the files. */
function shell(script: string) {
  const text = `users() { "${process.execPath}" "${MAIN}" "$@"; }; ${script}`;
  const child = spawn('bash', ['-c', text], { cwd: files.folder, env: { ...process.env, ...variables } });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      printed += part;
    });
  return new Promise<string>((resolve) => child.on('close', () => resolve(printed)));
}

/** Appends a command's output to a file that cannot exceed `blocks` of 512 bytes. */
const appendUpTo = async (blocks: number, name: string, words: readonly string[]) => {
  const stdout = openSync(files.pathOf(name), 'a');
  const runBy = ['sh', '-c', `ulimit -f ${blocks}; exec "$@"`, 'sh'];
  const { code } = await run(words, {}, { stdout, runBy });
  closeSync(stdout);
  return code;
};

test('what a full file cuts off is exit code 1, the cursor stays, and the next run continues with a line of its own', async () => {
  const cursor = await storeHead('night');
  const before = files.read('night');
  for (let count = 0; count < 20; count += 1) await call('POST', '', { email: `night.${count}@example.com` });
  const words = ['follow', '--once', '--cursor', cursor];

  expect(await appendUpTo(5, 'changes', words)).toBe(1);
  expect([files.read('night'), statSync(files.pathOf('changes')).size]).toEqual([before, 2560]);
  expect(await appendUpTo(100, 'changes', words)).toBe(0);
  expect(new Set(files.lines('changes').map(({ subject }) => subject)).size).toBe(20);
});

test.each([
  ['{"id":"1"}', '{"id":"1"}'],
  ['# a note', '# a note'],
])('a last line %j that lacks its line end is kept', async (content, kept) => {
  files.write('kept', content);
  await appendUpTo(100, 'kept', ['get', 'stored.1@example.com']);

  expect(files.read('kept')).toMatch(new RegExp(`^${kept}\n\\{"id":"[^\n]+\\}\n$`));
});

test('refused lines and the last line reach a slow reader, and without a reader the exit code is 1', async () => {
  files.write('bad', '{"is_active":1}\n'.repeat(2000));
  const slow = await shell('users import bad 2>&1 | { sleep 1; cat; }');
  const gone = await shell('users import bad 2>&1 | head -1 > first; echo $PIPESTATUS');

  expect([slow.match(/^\{"line"/gm)?.length, lastLine(slow)]).toEqual([
    2000,
    'created 0, exists 0, refused 2000',
  ]);
  expect(gone).toBe('1\n');
});

test('pipes are written to by a path, a link and a descriptor, and a link stays', async () => {
  symlinkSync('/dev/stdout', files.pathOf('link'));
  const counts = await shell(
    'mkfifo pipe; ln -s pipe to-pipe; { sleep 0.3; wc -l < pipe; } & users export --out to-pipe 2> /dev/null; wait\n' +
      'for out in link /dev/stdout /dev/fd/1; do users export --out $out 2> /dev/null | wc -l; done\n' +
      'users export --out >(wc -l) 2>&1 | grep -v exported; test -L link && test -p to-pipe && echo kept',
  );
  const total = (await shell('users export 2> /dev/null | wc -l')).trim();

  expect(counts.trim().split(/\s+/)).toEqual([...Array(5).fill(total), 'kept']);
});

test('a replaced file keeps its mode', async () => {
  const out = files.write('private', 'as it was');
  execFileSync('chmod', ['600', out]);
  await run(['export', '--out', out]);

  expect(statSync(out).mode & 0o777).toBe(0o600);
});

test('one file for two options in any spelling, an empty path and a folder are exit code 2', async () => {
  const out = files.write('one', 'as it was');
  linkSync(out, files.pathOf('hard'));
  symlinkSync('one', files.pathOf('soft'));
  mkdirSync(files.pathOf('folder'));
  symlinkSync('folder', files.pathOf('other'));
  for (const name of ['hard', 'soft', 'folder/../one', './one', 'other/../one'])
    expect(await run(['export', '--out', out, '--cursor', `${files.folder}/${name}`])).toEqual(
      silent(2, '--out and --cursor must name two files. See: users export --help'),
    );
  const same = await run([
    'export',
    '--out',
    `${files.folder}/folder/new`,
    '--cursor',
    `${files.folder}/other/new`,
  ]);
  const appended = openSync(out, 'a');
  const piped = await run(['export', '--out', out, '--cursor', '/dev/stdout'], {}, { stdout: appended });
  closeSync(appended);

  expect([same.code, piped.code, files.read('one')]).toEqual([2, 2, 'as it was']);
  expect(await run(['export', '--out', ''])).toEqual(
    silent(2, '--out must not be empty. See: users export --help'),
  );
  expect(await run(['export', '--out', files.pathOf('folder')])).toEqual(
    silent(2, `${files.pathOf('folder')} is a folder, and must be a file`),
  );
});

test.each([
  ['two signals', 2, 0],
  ['one signal', 1, 9000],
])('%s end a command whose reader stalls, and no file remains', async (_, count, atLeast) => {
  const child = spawn('sleep', ['1000'], { stdio: ['pipe', 'ignore', 'ignore'] });
  const pipe = (child.stdin as unknown as { _handle: { fd: number } })._handle.fd;
  const running = start(['export', '--cursor', files.pathOf('never')], {}, { stdout: pipe });
  await until('it has opened its files', () =>
    readdirSync(files.folder).some((name) => name.startsWith('never')),
  );
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const begin = performance.now();
  for (let sent = 0; sent < count; sent += 1) {
    running.signal('SIGTERM');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { code } = await running.ended;
  const took = performance.now() - begin;
  child.kill();

  expect(code).toBe(1);
  expect(took).toBeGreaterThan(atLeast);
  expect(took).toBeLessThan(atLeast + 5000);
  expect(readdirSync(files.folder).filter((name) => name.startsWith('never'))).toEqual([]);
});
