import { appendFileSync, mkdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { copyOfProject, npm, removeProject } from '../stage/project-copy.ts';

const folder = copyOfProject();
afterAll(() => removeProject(folder));

/** Starts the built host without settings. It runs if it names them. */
const start = () => npm(folder, ['start', '--silent']);

const BUILDING = 'Building dist/\n';
const NAMES_SETTINGS = expect.stringMatching(/^(?!Building).*SVC_OAUTH_ISSUER/s);

// In this order: each test starts from the state that the test before has left.

test('npm start builds a missing build, and runs it', { timeout: 180_000 }, async () => {
  const { code, stderr } = await start();

  expect({ code, begin: stderr.slice(0, BUILDING.length) }).toEqual({ code: 1, begin: BUILDING });
  expect(stderr.slice(BUILDING.length)).toEqual(NAMES_SETTINGS);
});

test('a current build is run without building', async () => {
  const before = statSync(join(folder, 'dist/built')).ino;

  expect(await start()).toEqual({ code: 1, stdout: '', stderr: NAMES_SETTINGS });
  expect(statSync(join(folder, 'dist/built')).ino).toBe(before);
});

test('files that are generated from packages below infra/ do not make a build stale', async () => {
  const later = Date.now() / 1000 + 60;
  for (const folderOfPackage of ['infra/client', 'infra/lambda']) {
    const made = join(folder, folderOfPackage, 'dist');
    mkdirSync(made, { recursive: true });
    for (const path of [made, join(folder, folderOfPackage)]) utimesSync(path, later, later);
  }

  expect(await start()).toEqual({ code: 1, stdout: '', stderr: NAMES_SETTINGS });
});

test('a build older than a source is built again before it runs', { timeout: 180_000 }, async () => {
  appendFileSync(join(folder, 'host/main.ts'), "\nprocess.stdout.write('changed\\n');\n");

  const { stdout, stderr } = await start();

  expect(stdout).toBe('changed\n');
  expect(stderr).toMatch(/^Building dist\/\n/);
});

test('a failed build is reported, and nothing is run', { timeout: 180_000 }, async () => {
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

test('without sources and packages, npm start runs the build', async () => {
  for (const name of ['handlers', 'host', 'lib', 'infra', 'node_modules', 'esbuild.config.mjs']) {
    rmSync(join(folder, name), { recursive: true });
  }

  expect(await start()).toEqual({ code: 1, stdout: 'changed\n', stderr: NAMES_SETTINGS });
});

test('without sources and a build, npm start reports that', async () => {
  rmSync(join(folder, 'dist'), { recursive: true });

  const { code, stdout, stderr } = await start();

  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch('There is neither dist/host/main.mjs nor a source to build it from.');
});
