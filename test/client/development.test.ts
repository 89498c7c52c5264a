import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startDevelopment } from '../stage/development.ts';
import { blockOf, blocksOf } from '../stage/page-blocks.ts';
import { copyOfProject, removeProject, runIn } from '../stage/project-copy.ts';
import { usersNamed } from './command.ts';

test('in a clone, npm run users builds the command first, and needs no settings beside npm run dev', {
  timeout: 240_000,
}, async () => {
  const folder = copyOfProject();
  rmSync(join(folder, 'infra/client/dist'), { recursive: true, force: true });
  writeFileSync(join(folder, 'users.ndjson'), usersNamed('clone', 3));
  const connection = join(folder, '.data/development.json');
  const development = await startDevelopment({}, folder);
  const [url] = /http:\/\/\S+/.exec(await development.untilBanner()) ?? [];
  const importUsers = () => runIn(folder, ['sh', '-c', blockOf('infra/docs/import-export.md', 'Start')]);
  const first = await importUsers();
  const again = await importUsers();
  const { mode } = statSync(connection);
  const [mirror = '', next = ''] = blocksOf('infra/docs/import-export.md', 'Mirror into another database', 2);
  const [, PGPORT] = /postgres@127\.0\.0\.1:(\d+)/.exec(development.printed()) ?? [];
  const postgres = { PGHOST: '127.0.0.1', PGPORT, PGUSER: 'postgres', PGDATABASE: 'postgres' };
  const start = blockOf('infra/docs/import-export.md', 'Start');
  const mirrored = await runIn(folder, ['bash', '-euc', start + mirror + next], postgres);
  const { token } = JSON.parse(readFileSync(connection, 'utf8'));
  await development.stop({ keepsData: true });
  const isLeft = existsSync(connection);
  const without = await importUsers();
  removeProject(folder);

  const said = `Using the service of npm run dev on ${url}\ncreated 3, exists 0, refused 0\n`;
  expect(first).toEqual({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(/^Installing and building infra\/client: /),
  });
  expect(first.stderr.slice(-said.length)).toBe(said);
  expect(again).toEqual({ code: 0, stdout: '', stderr: said });
  expect(mirrored).toMatchObject({ code: 0, stdout: '' });
  expect([mode & 0o777, isLeft]).toEqual([0o600, false]);
  expect(first.stderr + again.stderr).not.toContain(token);
  expect([without.code, without.stderr.split('\n')[0]]).toEqual([
    2,
    'set --url or USERS_URL, and USERS_TOKEN, or USERS_TOKEN_URL, USERS_CLIENT_ID and USERS_CLIENT_SECRET',
  ]);
});
