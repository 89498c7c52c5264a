import { closeSync, openSync, readdirSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { until } from '../stage/until.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { linesOf, silent, usersNamed } from './command.ts';

const stage = acceptableUnderTest();
const { files, call, run, start, storeHead } = stage;

beforeAll(async () => {
  await run(['import', '-'], {}, { input: usersNamed('early', 1500) });
});

/** The bytes of the list, as the service returns them. */
async function table(): Promise<string> {
  const pages: string[] = [];
  const headers = { authorization: `Bearer ${stage.variables.USERS_TOKEN}` };
  for (let next: string | undefined = '/api/v1/users/?limit=1000'; next; ) {
    const response: Response = await fetch(stage.service.url + next, { headers });
    pages.push((await response.text()).slice(1, -1));
    next = /<(.*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
  }
  return pages.filter((page) => page !== '').join(',');
}

const joined = (lines: string) => lines.trimEnd().replaceAll('\n', ',');

describe('users export', () => {
  test('the file has every user, byte for byte as the service returns them, and no other file remains', async () => {
    const out = files.write('users.ndjson', 'an older export');
    const ended = await run(['export', '--out', out, '--cursor', files.pathOf('cursor')]);

    expect(ended).toEqual(silent(0, 'exported 1503'));
    expect(joined(files.read('users.ndjson'))).toBe(await table());
    expect(readdirSync(files.folder).sort()).toEqual(['cursor', 'users.ndjson']);
  });

  test('a reader that closes the pipe ends it, and the cursor stays as it was', async () => {
    const cursor = files.write('kept-cursor', 'as it was');
    const running = start(['export', '--cursor', cursor]);
    running.closeOutput();

    expect(await running.ended).toEqual(
      silent(1, 'standard output: closed by its reader before everything was written'),
    );
    expect(files.read('kept-cursor')).toBe('as it was');
  });

  test.each([
    [[], /^standard output: ENOSPC: no space left on device, write\n$/],
    [['--out', '/dev/full'], /^\/dev\/full: ENOSPC: no space left on device, write\n$/],
    [['--out', '/none/users'], /^\/none\/users: ENOENT: no such file or directory/],
  ])('a full disk and a folder that does not exist end it: %j', async (args, message) => {
    const full = openSync('/dev/full', 'w');
    const ended = await run(['export', ...args], {}, { stdout: full });
    closeSync(full);

    expect(ended).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
  });

  test('a file that cannot grow stays as before, and so does the cursor', async () => {
    const [out, cursor] = [files.write('kept', 'as it was'), files.write('kept-cursor', 'as it was')];
    const limited = ['sh', '-c', 'ulimit -f 16; exec "$@"', 'sh'];
    const ended = await run(['export', '--out', out, '--cursor', cursor], {}, { runBy: limited });

    expect(ended).toEqual(silent(1, `${out}: EFBIG: file too large, write`));
    expect([files.read('kept'), files.read('kept-cursor')]).toEqual(['as it was', 'as it was']);
    expect(readdirSync(files.folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('the draft of a killed command with the same process id is replaced', async () => {
    const out = files.pathOf('again');
    const left = ['sh', '-c', `echo torn > ${out}.$$.part; exec "$@"`, 'sh'];
    const ended = await run(['export', '--out', out], {}, { runBy: left });

    expect(ended.code).toBe(0);
    expect(joined(files.read('again'))).toBe(await table());
  });
});

describe('users follow', () => {
  test('--once writes the changes after the cursor, and replaces the cursor', async () => {
    const cursor = await storeHead('position');
    const created = await call('POST', '', { email: 'followed@example.com' });
    await call('PATCH', created.id, { is_active: false });
    await call('DELETE', created.id);
    const args = ['follow', '--once', '--cursor', cursor];
    const first = await run(args);
    const again = await run(args);
    const changes = linesOf(first.stdout) as { type: string; subject: string; data: { changed: string[] } }[];

    expect([first.code, first.stderr, again]).toEqual([0, '', silent(0)]);
    expect(changes.map(({ type, subject, data }) => [type, subject, data.changed])).toEqual([
      ['user.created', created.id, []],
      ['user.updated', created.id, ['is_active']],
      ['user.deleted', created.id, []],
    ]);
  });

  test('it waits for changes, and Ctrl-C ends it with a cursor after what was written', async () => {
    const cursor = await storeHead('live');
    const args = ['follow', '--cursor', cursor];
    const running = start(args);
    const created = await call('POST', '', { email: 'live@example.com' });
    await until('the change is written', () => running.printed.stdout.endsWith('\n'));
    running.signal('SIGINT');
    const { code, stdout, stderr } = await running.ended;
    const rest = await run([...args, '--once']);

    expect([code, stderr]).toEqual([1, 'Stopped. Run the same command again to continue.\n']);
    expect(linesOf(stdout)).toMatchObject([{ type: 'user.created', subject: created.id }]);
    expect(rest.stdout).toBe('');
  });

  test('an incomplete last line of a killed command is removed when the file is appended to', async () => {
    const cursor = await storeHead('torn');
    await call('POST', '', { email: 'torn@example.com' });
    const complete = '{"specversion":"1.0","id":"1-00000000"}\n';
    files.write('changes', `${complete}{"specversion":"1.0","id":"2-0`);
    const appended = openSync(files.pathOf('changes'), 'a');
    await run(['follow', '--once', '--cursor', cursor], {}, { stdout: appended });
    closeSync(appended);

    expect(files.lines('changes').map(({ id, type }) => type ?? id)).toEqual(['1-00000000', 'user.created']);
  });

  test('a cursor whose changes are not available is exit code 4', async () => {
    const cursor = files.write('expired', btoa('.999999').replace(/=+$/, ''));
    const reason =
      `The changes after the cursor in ${cursor} are no longer available (410). Export all users again with ` +
      `--cursor ${cursor}, replace your copy with them, then follow from there.`;

    expect(await run(['follow', '--once', '--cursor', cursor])).toEqual(silent(4, reason));
  });

  test.each([
    ['nonsense', 1, /wrong does not have a cursor of this service: 422 Unprocessable Entity: /],
    ['\n', 2, /wrong is empty\. Create it with/],
  ])('a file with %j instead of a cursor is exit code %i', async (content, code, message) => {
    const ended = await run(['follow', '--cursor', files.write('wrong', content)]);

    expect(ended).toEqual({ code, stdout: '', stderr: expect.stringMatching(message) });
  });

  test('a closed pipe leaves the cursor before the changes that were not written', async () => {
    const cursor = await storeHead('piped');
    await call('POST', '', { email: 'piped@example.com' });
    const before = files.read('piped');
    const running = start(['follow', '--once', '--cursor', cursor]);
    running.closeOutput();
    const { code } = await running.ended;
    const again = await run(['follow', '--once', '--cursor', cursor]);

    expect([code, again.code]).toEqual([1, 0]);
    expect(before).not.toBe(files.read('piped'));
    expect(linesOf(again.stdout)).toHaveLength(1);
  });
});

test('an export while writers work and the changes after its cursor are the table, byte for byte', async () => {
  let isOver = false;
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let count = 0; !isOver; count += 1) {
      const { id } = await call('POST', '', { email: `w${writer}.${count}@example.com` });
      await call('PATCH', id, { full_name: `Name ${count}`, is_active: count % 2 === 0 });
      if (count % 3 === 0) await call('DELETE', id);
      const old = 1 + ((writer * 331 + count * 7) % 1500);
      const [user] = await call('GET', `?email=early.${old}@example.com`);
      if (user) await call(count % 4 === 0 ? 'DELETE' : 'PATCH', user.id, { full_name: `Changed ${count}` });
    }
  });
  const paths = ['--out', files.pathOf('busy'), '--cursor', files.pathOf('busy-cursor')];
  const exported = await run(['export', ...paths]);
  const early = await run(['follow', '--once', '--cursor', files.pathOf('busy-cursor')]);
  isOver = true;
  await Promise.all(writers);
  const late = await run(['follow', '--once', '--cursor', files.pathOf('busy-cursor')]);
  const changed = [...new Set(linesOf(early.stdout + late.stdout).map(({ subject }) => String(subject)))];

  const lines = files.read('busy').trimEnd().split('\n');
  const copy = new Map(lines.map((line) => [JSON.parse(line).id as string, line]));
  for (let first = 0; first < changed.length; first += 100) {
    const ids = changed.slice(first, first + 100);
    for (const id of ids) copy.delete(id);
    const users = await call('GET', `?limit=100&ids=${ids.join()}`);
    for (const user of users) copy.set(user.id, JSON.stringify(user));
  }
  const placeOf = (line: string) => {
    const { created_at, id } = JSON.parse(line);
    return `${created_at} ${id}`;
  };
  const inOrder = [...copy.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));

  expect([exported.code, early.code, late.code]).toEqual([0, 0, 0]);
  expect(changed.length).toBeGreaterThan(20);
  expect(inOrder.join()).toBe(await table());
});
