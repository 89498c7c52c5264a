import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { BUILD_VERSION, VERSION } from '../../lib/version.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { openFolder } from '../stage/project-copy.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The files with the version, and the two programs that read it. */
const FILES = [
  ...['package.json', 'package-lock.json', 'infra/client/package.json', 'infra/client/package-lock.json'],
  ...['README.md', 'infra/client/README.md', 'Dockerfile', 'infra/compose.yaml'],
  'infra/kubernetes/components/release/kustomization.yaml',
  ...['infra/kubernetes/examples/production/kustomization.yaml', 'CHANGELOG.md', 'infra/tools/release.ts'],
  ...['infra/build-version.ts', 'README.md'],
];

let folder: string;

beforeAll(() => {
  folder = openFolder();
  const archive = execFileSync('tar', ['-c', '-C', ROOT, ...FILES]);
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  return () => rmSync(folder, { recursive: true });
});

const read = (root: string, file: string) => readFileSync(join(root, file), 'utf8');

/** Runs a program in the folder. Resolves with its exit code and its output. */
function run(program: string, ...words: string[]) {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd: folder, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

const release = (...words: string[]) => run(process.execPath, 'infra/tools/release.ts', ...words);
const printed = (...words: string[]) =>
  run(process.execPath, 'infra/build-version.ts', ...words).output.trim();

function commit(subject: string): string {
  run('git', 'init', '--quiet');
  const account = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
  run('git', 'add', '--all');
  run('git', ...account, 'commit', '--quiet', '--allow-empty', '-m', subject);
  return run('git', 'rev-parse', 'HEAD').output.slice(0, 7);
}

test('the service and its document have the version of package.json', () => {
  const { version } = packageJson;

  expect([VERSION, BUILD_VERSION, JSON.parse(read(ROOT, 'infra/openapi.json')).info.version]).toEqual([
    version,
    version,
    version,
  ]);
});

test('infra/tools/release.ts sets a version everywhere, and accepts it from the commit "Release X.Y.Z" alone', () => {
  expect(release('9.8.0-dev')).toEqual({ status: 0, output: '' });
  expect([printed(), printed('--tag')]).toEqual(['9.8.0-dev', '9.8.0-dev']);
  const first = commit('Begin 9.8.0');
  expect([printed(), printed('--tag')]).toEqual([`9.8.0-dev+${first}`, `9.8.0-dev-${first}`]);
  expect(release()).toEqual({ status: 0, output: '' });

  // The release is prepared, and not committed yet.
  expect(release('9.8.0')).toEqual({ status: 0, output: '' });
  expect(read(folder, 'CHANGELOG.md')).toMatch(/^## 9\.8\.0 - \d{4}-\d\d-\d\d\n\n## /m);
  expect(read(folder, 'README.md')).toMatch(/The latest release is 9\.8\.0 of \d{4}-\d\d-\d\d\./);
  expect(read(folder, 'infra/client/package-lock.json').match(/"9\.8\.0"/g)).toHaveLength(2);
  const second = commit('Release 9.8.0');
  expect([release().status, printed(), printed('--tag')]).toEqual([0, `9.8.0+${second}`, '9.8.0']);

  commit('Docs: correct a word');
  expect(release()).toEqual({
    status: 1,
    output:
      'The version is 9.8.0, and the commit is "Docs: correct a word": only "Release X.Y.Z" has the version X.Y.Z.\n',
  });
  expect(release('9.9.0-dev').status).toBe(0);
  expect(read(folder, 'CHANGELOG.md')).toMatch(/^## Unreleased \(9\.9\.0\)\n\n## 9\.8\.0 - /m);
  commit('Release 9.9.0');
  expect(release().status).toBe(1);

  // A shallow clone without tags, and a folder without a history.
  commit('Begin 9.9.0');
  run('git', 'clone', '--quiet', '--depth=1', '--no-tags', `file://${folder}`, 'clone');
  expect(run(process.execPath, 'clone/infra/tools/release.ts').status).toBe(0);
  rmSync(join(folder, 'clone'), { recursive: true });
  rmSync(join(folder, '.git'), { recursive: true });
  expect([release().status, printed()]).toEqual([0, '9.9.0-dev']);
});

test.each(FILES.slice(0, 10))('infra/tools/release.ts finds another version in %s', (file) => {
  release('9.8.0-dev');
  const text = read(folder, file);
  writeFileSync(join(folder, file), text.replace('9.8.0', '9.7.0'));
  const { status, output } = release();
  writeFileSync(join(folder, file), text);

  expect([status, output.includes('9.7.0')]).toEqual([1, true]);
  expect(release().status).toBe(0);
});
