import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { copyOfProject, openFolder, removeProject } from '../stage/project-copy.ts';

const run = promisify(execFile);

/** With a fixed author and date, the commit has the same hash on every machine. */
const COMMITTER = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.com',
  GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.com',
  GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
};

const parents: string[] = [];

/** A clone of a commit with all sources, built: its hash, and the hashes of the files in `dist/` by path. */
async function buildClone(path: string) {
  const parent = openFolder();
  parents.push(parent);
  mkdirSync(join(parent, path), { recursive: true });
  const folder = copyOfProject(join(parent, path));
  const options = { cwd: folder, env: { ...process.env, ...COMMITTER } };
  for (const words of ['init --quiet', 'add --all', 'commit --quiet --message=all'])
    await run('git', words.split(' '), options);
  const { stdout } = await run('git', ['rev-parse', 'HEAD'], options);
  await run(process.execPath, ['esbuild.config.mjs'], options);
  const files = globSync('dist/**', { cwd: folder, withFileTypes: true }).filter((file) => file.isFile());
  const hashes = files.map(({ parentPath, name }) => {
    const file = join(parentPath, name);
    return [file.slice(folder.length), createHash('sha256').update(readFileSync(file)).digest('hex')];
  });
  return { folder, commit: stdout.trim(), hashes: Object.fromEntries(hashes.sort()) };
}

describe('two builds of a commit in folders of different depths', { timeout: 60_000 }, () => {
  let builds: Awaited<ReturnType<typeof buildClone>>[];

  beforeAll(async () => {
    builds = await Promise.all([buildClone('clone'), buildClone('much/deeper/a-clone-with-a-longer-name')]);
    return () => parents.forEach(removeProject);
  }, 300_000);

  test('are identical byte for byte', () => {
    const [one, other] = builds;
    expect(Object.keys(one?.hashes ?? {}).length).toBeGreaterThan(100);
    expect(other?.hashes).toEqual(one?.hashes);
    expect(other?.commit).toBe(one?.commit);
  });

  /** The files of the first build that contain a text. */
  function filesWith(text: string, files: string): readonly string[] {
    const { folder = '' } = builds[0] ?? {};
    return globSync(files, { cwd: folder }).filter((file) =>
      readFileSync(join(folder, file), 'utf8').includes(text),
    );
  }

  test('have the commit in their version', () => {
    const version = `"${packageJson.version}+${builds[0]?.commit.slice(0, 7)}"`;
    expect(filesWith(version, 'dist/host/**/*.mjs')).toHaveLength(1);
    expect(filesWith(version, 'dist/functions/getUser/**/*.mjs')).toHaveLength(1);
  });

  test('contain no folder of the machine', () => {
    expect(filesWith(String(builds[0]?.folder), 'dist/**/*.{mjs,map}')).toEqual([]);
  });
});

test('a build refuses the version of another package', async () => {
  const words = ['esbuild.config.mjs', '--version=9.9.9+75c07d4'];
  await expect(run(process.execPath, words)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"9.9.9+75c07d4" is not'),
  });
});
