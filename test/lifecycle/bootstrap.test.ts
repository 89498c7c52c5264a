import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { npm, openFolder, removeProject, runIn } from '../stage/project-copy.ts';

const ROOT = join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

const FOUND = { code: 0, stdout: `${process.version}\n` };
const INSTALLED = /^Installing the packages with "npm ci"/;
const INSTALLED_TOOLS = /^Installing the tools of tests and checks with "npm ci"/;

let folder: string;
let runtime: string;

/** A project with the real bootstrap, a package with this Node and one with a tool, which need no network. */
beforeAll(async () => {
  folder = openFolder();
  runtime = join(folder, 'node_modules/.bin/node');
  const write = (name: string, content: object | string, mode = 0o644) => {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeFileSync(join(folder, name), text, { mode });
  };

  mkdirSync(join(folder, 'runtime/bin'), { recursive: true });
  write('runtime/package.json', { name: 'runtime', version: '24.0.0', bin: { node: 'bin/node' } });
  write('runtime/bin/node', `#!/bin/sh\nexec '${process.execPath}' "$@"\n`, 0o755);
  await npm(folder, ['pack', './runtime']);
  write('package.json', {
    name: 'newcomer',
    version: '1.0.0',
    scripts: { dev: scripts.dev, test: scripts.test },
    optionalDependencies: { runtime: 'file:runtime-24.0.0.tgz' },
  });
  mkdirSync(join(folder, 'host/development'), { recursive: true });
  write('host/development/launch.ts', 'console.log(process.version);');
  for (const name of ['commands.sh', 'bootstrap.mjs']) copyFileSync(join(ROOT, name), join(folder, name));
  await npm(folder, ['install', '--package-lock-only', '--offline']);

  mkdirSync(join(folder, 'tool'));
  mkdirSync(join(folder, 'test'));
  write('tool/package.json', { name: 'tool', version: '1.0.0', bin: { vitest: 'vitest' } });
  write('tool/vitest', '#!/bin/sh\necho "tested: $*"\n');
  await npm(folder, ['pack', './tool']);
  write('test/package.json', { name: 'tools', dependencies: { tool: 'file:../tool-1.0.0.tgz' } });
  await npm(join(folder, 'test'), ['install', '--package-lock-only', '--offline']);
  return () => removeProject(folder);
});

const dev = () => npm(folder, ['run', '--silent', 'dev']);

test('the first run installs the packages, and the scripts run with the Node of the project', async () => {
  const first = await dev();
  const second = await dev();

  expect(first).toEqual({ ...FOUND, stderr: expect.stringMatching(INSTALLED) });
  expect(second).toEqual({ ...FOUND, stderr: '' });
});

test('a test installs the tools, which the first run does not need, and their programs are found', async () => {
  await dev();
  const hadTools = existsSync(join(folder, 'test/node_modules'));
  const runs = [];
  for (const repeat of ['first', 'second']) runs.push(await npm(folder, ['test', '--silent', '--', repeat]));
  rmSync(join(folder, 'node_modules/.bin/vitest'));
  const relinked = await npm(folder, ['test', '--silent']);

  expect(hadTools).toBe(false);
  expect(runs).toEqual([
    { code: 0, stdout: 'tested: run first\n', stderr: expect.stringMatching(INSTALLED_TOOLS) },
    { code: 0, stdout: 'tested: run second\n', stderr: '' },
  ]);
  expect(relinked).toEqual({ code: 0, stdout: 'tested: run\n', stderr: '' });
});

test('the service needs at most 140 packages, and ReDoc is listed as a file that needs no others', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const needed = Object.values<{ optional?: true }>(packages).filter(({ optional }) => !optional);

  expect(needed.length).toBeLessThan(140);
  expect(Object.keys(packages['node_modules/redoc'])).toEqual(['version', 'integrity', 'license']);
});

describe('every run repairs, without a new installation,', () => {
  beforeEach(async () => {
    await dev();
    rmSync(runtime);
  });

  const place = (content: string) => () => writeFileSync(runtime, content, { mode: 0o755 });

  test.each([
    ['a runtime without its link, as npm 10 leaves it', () => {}],
    ['a broken link', () => symlinkSync('../gone/bin/node', runtime)],
    ['an older Node in its place', place('#!/bin/sh\necho v20.20.2\n')],
    ['a later Node in its place, if a 24 is installed', place('#!/bin/sh\necho v26.10.0\n')],
    ['a program of another system in its place', place('\xcf\xfa\xed\xfe')],
    ['a program that fails in its place', place('#!/bin/sh\nexit 1\n')],
  ])('%s', async (_what, damage) => {
    damage();

    expect(await dev()).toEqual({ ...FOUND, stderr: '' });
  });
});

describe('every run installs again', () => {
  beforeEach(dev);

  test.each([
    ['if the list of packages is truncated', () => writeFileSync(list(), '{"packages":{"node_mod')],
    ['if the list of packages is missing', () => rmSync(list())],
  ])('%s', async (_what, damage) => {
    damage();

    expect(await dev()).toEqual({ ...FOUND, stderr: expect.stringMatching(INSTALLED) });
  });

  function list(): string {
    return join(folder, 'node_modules/.package-lock.json');
  }
});

test('of two runs that start at once one installs, and both have the packages', async () => {
  rmSync(join(folder, 'node_modules'), { recursive: true });

  const both = await Promise.all([dev(), dev()]);

  expect(both).toEqual([expect.objectContaining(FOUND), expect.objectContaining(FOUND)]);
  expect(both.filter(({ stderr }) => stderr.includes('  installed in '))).toHaveLength(1);
});

test('without npm the commands use the Node of the project, and say what is missing to install it', async () => {
  await dev();
  const PATH = join(folder, 'programs');
  mkdirSync(PATH);
  symlinkSync(process.execPath, join(PATH, 'node'));
  const run = () => runIn(folder, ['/bin/sh', 'commands.sh', 'dev'], { PATH });
  const installed = await run();
  rmSync(join(folder, 'node_modules'), { recursive: true });
  const missing = await run();

  expect(installed).toEqual({ ...FOUND, stderr: '' });
  expect(missing).toMatchObject({ code: 1, stdout: '' });
  expect(missing.stderr).toMatch(
    /\n\nnpm is missing\. It comes with Node\.js, and installs the packages\.\n$/,
  );
});

test('a failed installation prints the output of npm, and the next run tries again', async () => {
  const lists = ['package.json', 'package-lock.json'].map((name) => join(folder, name));
  const contents = lists.map((file) => readFileSync(file, 'utf8'));
  const [project, lock] = contents.map((content) => JSON.parse(content));
  project.dependencies = { absent: '1.0.0' };
  lock.packages[''].dependencies = project.dependencies;
  lock.packages['node_modules/absent'] = { version: '1.0.0', resolved: 'http://127.0.0.1:1/absent.tgz' };
  for (const [index, list] of [project, lock].entries()) {
    writeFileSync(lists[index] as string, JSON.stringify(list));
  }

  const failed = await npm(folder, ['run', '--silent', 'dev'], { npm_config_fetch_retries: '0' });
  for (const [index, content] of contents.entries()) writeFileSync(lists[index] as string, content);
  const next = await dev();

  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toMatch(
    /ECONNREFUSED.*"npm ci" failed with exit code \d+: see its words above\.\n$/s,
  );
  expect(next).toMatchObject(FOUND);
});
