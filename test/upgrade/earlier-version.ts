import { execFileSync } from 'node:child_process';
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { openFolder } from '../stage/project-copy.ts';

const ROOT = join(import.meta.dirname, '../..');

/** How git finds the commits of versions: see CHANGELOG.md. */
const COMMITS = {
  '1.0.0': ['214abf8b8816f6da52832c0c201a2124416be05c'],
  '1.1.0': ['cef236a707ebf02dd6e1ea866367b4ea31a0a933'],
  '1.2.0': ['--grep', '^Release 1.2.0$'],
  '1.3.0': ['--grep', '^Release 1.3.0$'],
  '1.4.0': ['--grep', '^Release 1.4.0$'],
} as const;

/**
 * The sources of an earlier version, in a folder of their own, with the packages of this version.
 *
 * @throws if the clone does not have the commit, because there is nothing to compare with
 */
export function checkOutVersion(version: keyof typeof COMMITS): string {
  const folder = openFolder();
  const options = { cwd: ROOT, maxBuffer: 2 ** 28, stdio: 'pipe' } as const;
  try {
    const found = execFileSync('git', ['log', '--max-count=1', '--format=%H', ...COMMITS[version]], options);
    const archive = execFileSync('git', ['archive', String(found).trim()], options);
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
  } catch (cause) {
    rmSync(folder, { recursive: true });
    const remedy = 'the history of the repository is needed (git fetch --unshallow)';
    throw new Error(`version ${version} cannot be checked out: ${remedy}`, { cause });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}
