import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Kept for the next run, which otherwise takes a minute more. */
const CACHE = join(import.meta.dirname, '../../../.data/bench/peers');

/** Creates a folder with these packages from npm. None of their scripts are run. */
export function fromNpm(packages: readonly string[]): Promise<string> {
  return installed(packages, async (folder) => {
    await writeFile(join(folder, 'package.json'), '{"private": true}');
    const options = ['install', '--save-exact', '--ignore-scripts', '--no-audit', '--no-fund', ...packages];
    if (packages.length > 0) await run('npm', options, { cwd: folder });
  });
}

/**
 * Creates a folder with these packages of Debian in its folder `root`, and with the packages that they depend on unless
 * they are wanted `alone`. They are unpacked, not installed: nothing of the system changes, and root is not needed.
 */
export function fromDebian(packages: readonly string[], { alone = false } = {}): Promise<string> {
  return installed(packages, async (folder) => {
    await apt(folder, 'download', '-qq', ...(alone ? packages : await missingWith(packages)));
    await mkdir(join(folder, 'root'));
    for (const archive of (await readdir(folder)).filter((name) => name.endsWith('.deb'))) {
      await run('dpkg', ['--extract', archive, 'root'], { cwd: folder });
      await rm(join(folder, archive));
    }
  });
}

/** The packages that are not installed, of these and of what they depend on. */
async function missingWith(packages: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await apt('/', 'install', '--simulate', '-qq', '--no-install-recommends', ...packages);
  return [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name = '']) => name);
}

const apt = (cwd: string, ...words: readonly string[]) =>
  run('apt-get', words, { cwd, maxBuffer: 1 << 24 }).catch((error) => {
    throw new Error(`${error.stderr || error.message} ("apt-get update" may help)`);
  });

async function installed(
  packages: readonly string[],
  fetchInto: (folder: string) => Promise<void>,
): Promise<string> {
  const digest = createHash('sha256').update(packages.join()).digest('hex').slice(0, 8);
  const name = `${(packages[0] ?? 'node').replaceAll(/[^\w.-]/g, '')}-${digest}`;
  const folder = join(CACHE, name);
  if (!existsSync(folder)) {
    // Under its final name a folder is complete, whenever an installation was cut off.
    const draft = `${folder}.${process.pid}`;
    await mkdir(draft, { recursive: true });
    await fetchInto(draft).catch(async (error) => {
      await rm(draft, { recursive: true });
      // What npm and apt-get say first is the reason; the rest is where it happened.
      throw new Error(String(error.message).split('\n').slice(0, 5).join(' '));
    });
    await rename(draft, folder).catch(async (error) => {
      await rm(draft, { recursive: true });
      // Another process may have finished at the same time.
      if (!existsSync(folder)) throw error;
    });
  }
  return folder;
}
