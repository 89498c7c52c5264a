import { appendFileSync, mkdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyOfProject, npm, removeProject } from '../stage/project-copy.ts';

let folder: string;

beforeAll(() => {
  folder = copyOfProject();
});

afterAll(() => removeProject(folder));

/** Starts the built host without its settings: that it names them shows that it runs. */
const start = () => npm(folder, ['start', '--silent']);

const BUILDING = 'Building dist/\n';
const NAMES_SETTINGS = expect.stringMatching(/^(?!Building).*SVC_OAUTH_ISSUER/s);

// In this order: each state is what the one before has left.

test('npm start builds what is not built, and runs it', { timeout: 60_000 }, async () => {
  const { code, stderr } = await start();

  expect({ code, begin: stderr.slice(0, BUILDING.length) }).toEqual({ code: 1, begin: BUILDING });
  expect(stderr.slice(BUILDING.length)).toEqual(NAMES_SETTINGS);
});

test('what is up to date is run as it is', async () => {
  const before = statSync(join(folder, 'dist/built')).ino;

  expect(await start()).toEqual({ code: 1, stdout: '', stderr: NAMES_SETTINGS });
  expect(statSync(join(folder, 'dist/built')).ino).toBe(before);
});

test('what is made of the packages below infra/ makes no build stale', async () => {
  const later = Date.now() / 1000 + 60;
  for (const folderOfPackage of ['infra/client', 'infra/lambda']) {
    const made = join(folder, folderOfPackage, 'dist');
    mkdirSync(made, { recursive: true });
    for (const path of [made, join(folder, folderOfPackage)]) utimesSync(path, later, later);
  }

  expect(await start()).toEqual({ code: 1, stdout: '', stderr: NAMES_SETTINGS });
});

test('a source that is newer than the build is built before it runs', { timeout: 60_000 }, async () => {
  appendFileSync(join(folder, 'host/main.ts'), "\nprocess.stdout.write('changed\\n');\n");

  const { stdout, stderr } = await start();

  expect(stdout).toBe('changed\n');
  expect(stderr).toMatch(/^Building dist\/\n/);
});

test('a build that does not succeed is told, and nothing is run', { timeout: 60_000 }, async () => {
  const file = join(folder, 'host/broken.ts');
  appendFileSync(join(folder, 'host/main.ts'), "\nimport './broken.ts';\n");
  appendFileSync(file, 'export const = 1;\n');

  const { code, stdout, stderr } = await start();
  rmSync(file);
  appendFileSync(file, 'export {};\n');
  const mended = await start();

  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/The build failed: see its words above\.\n$/m);
  expect(mended).toMatchObject({ stdout: 'changed\n', stderr: expect.stringMatching(/^Building dist\//) });
});

test('without sources and packages npm start runs what is there', async () => {
  for (const name of ['handlers', 'host', 'lib', 'infra', 'node_modules', 'esbuild.config.mjs']) {
    rmSync(join(folder, name), { recursive: true });
  }

  expect(await start()).toEqual({ code: 1, stdout: 'changed\n', stderr: NAMES_SETTINGS });
});

test('without sources and a build npm start says so', async () => {
  rmSync(join(folder, 'dist'), { recursive: true });

  const { code, stdout, stderr } = await start();

  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch('There is neither dist/host/main.mjs nor a source to build it from.');
});
