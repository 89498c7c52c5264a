import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { lstat, mkdir, readdir, readlink, rename, rm, symlink, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isProcessAlive } from './process.ts';
import { until } from './until.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The inputs of the build, and the packages. */
const SOURCES = ['handlers', 'host', 'lib', 'infra', 'package.json', 'node_modules'];
const PREFIX = `user-management-build-${process.getuid?.() ?? 0}-`;

const DAY_MS = 24 * 3600 * 1000;

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
    await removeUnusedBuilds();
    await until('a build', async () => existsSync(main) || (await buildInto(folder)), { seconds: 900 });
  }
  await utimes(folder, new Date(), new Date());
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
  if (!(await takeLock(folder))) return false;
  const draft = draftOf(folder, process.pid);
  try {
    await mkdir(draft);
    for (const name of SOURCES) await symlink(join(ROOT, name), join(draft, name));
    const config = join(ROOT, 'esbuild.config.mjs');
    const builder = spawn(process.execPath, [config], { cwd: draft, stdio: ['ignore', 'ignore', 'inherit'] });
    const [code] = await once(builder, 'exit');
    if (code !== 0) throw new Error(`the build ended with exit code ${code}`);
    // Another process may have finished at the moment this one began.
    await rename(draft, folder).catch(() => undefined);
    return true;
  } finally {
    await rm(draft, { recursive: true, force: true });
    await rm(lockOf(folder), { force: true });
  }
}

/** A link to the id of the process that builds. */
const lockOf = (folder: string) => `${folder}.builder`;
const draftOf = (folder: string, builder: number) => `${folder}.${builder}`;

/** Returns whether this process has the lock. What a process has left that has ended is removed. */
async function takeLock(folder: string): Promise<boolean> {
  const lock = lockOf(folder);
  const isTaken = await symlink(String(process.pid), lock).catch(() => true);
  if (!isTaken) return true;
  const builder = Number(await readlink(lock).catch(() => process.pid));
  if (!isProcessAlive(builder)) {
    await rm(draftOf(folder, builder), { recursive: true, force: true });
    await rm(lock, { force: true });
  }
  return false;
}

/** Removes the builds that no process has asked for since yesterday, and drafts whose builder has ended as long ago. */
async function removeUnusedBuilds(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const path = join(tmpdir(), name);
    const { mtimeMs } = await lstat(path).catch(() => ({ mtimeMs: Date.now() }));
    const [, builder] = /\.(\d+)$/.exec(name) ?? [];
    const isUsed = Date.now() - mtimeMs < DAY_MS || (builder && isProcessAlive(Number(builder)));
    if (!name.startsWith(PREFIX) || isUsed) continue;
    await rm(path, { recursive: true, force: true });
  }
}
