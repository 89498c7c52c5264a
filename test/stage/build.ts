import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The inputs of the build, and the packages. */
const SOURCES = ['handlers', 'host', 'lib', 'infra', 'package.json', 'node_modules'];
const PREFIX = `user-management-build-${process.getuid?.() ?? 0}-`;

/** In seconds. A build that takes longer was interrupted. */
const LONGEST_BUILD = 90;
const DAY = 24 * 3600;

/**
 * The path of the main file of the host as `npm run build` makes it. It is built outside of the project, once for each
 * state of its sources, so that concurrent tests never see an incomplete or old build.
 */
export const builtHost = (): Promise<string> => (built ??= findOrBuild());

let built: Promise<string> | undefined;

async function findOrBuild(): Promise<string> {
  const folder = join(tmpdir(), PREFIX + fingerprint());
  const main = join(folder, 'dist/host/main.mjs');
  if (!existsSync(main)) {
    await removeBuildsOlderThan(DAY);
    await until('a build', () => existsSync(main) || buildInto(folder), { seconds: 2 * LONGEST_BUILD });
  }
  return main;
}

function fingerprint(): string {
  const files = [
    ...globSync('{handlers,host,lib}/**/*.ts', { cwd: ROOT }),
    ...globSync('infra/*.ts', { cwd: ROOT }),
    'esbuild.config.mjs',
    'package.json',
    'package-lock.json',
  ].sort();
  // The folder is part of the key, because the build refers to the packages in it.
  const hash = createHash('sha256').update(process.version).update(ROOT);
  for (const file of files) hash.update(file).update(readFileSync(join(ROOT, file)));
  return hash.digest('hex').slice(0, 16);
}

/** Builds, unless another process is building. Returns whether it has built. */
async function buildInto(folder: string): Promise<boolean> {
  const draft = `${folder}.draft`;
  if ((await ageOf(draft)) > LONGEST_BUILD) await rm(draft, { recursive: true, force: true });
  const isOurs = await mkdir(draft).then(
    () => true,
    () => false,
  );
  if (!isOurs) return false;
  for (const name of SOURCES) await symlink(join(ROOT, name), join(draft, name));
  const config = join(ROOT, 'esbuild.config.mjs');
  const builder = spawn(process.execPath, [config], { cwd: draft, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(builder, 'exit');
  if (code !== 0) {
    await rm(draft, { recursive: true });
    throw new Error(`the build ended with exit code ${code}`);
  }
  // Another process may have finished at the moment this one began.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true }));
  return true;
}

async function removeBuildsOlderThan(seconds: number): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const path = join(tmpdir(), name);
    if (name.startsWith(PREFIX) && (await ageOf(path)) > seconds) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

/** In seconds. 0 if the file does not exist. */
async function ageOf(path: string): Promise<number> {
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
  return (Date.now() - mtimeMs) / 1000;
}
