import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, lstat, mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Account, canWrite, runAs } from './account.ts';

/**
 * Returns the folder for the server's files: `wanted` or, if the server's account cannot reach it, a folder of that
 * account to which `wanted` becomes a link. Deleting `wanted` starts with an empty database.
 */
export async function homeFor(wanted: string, account: Account): Promise<string> {
  const linked = await readlink(wanted).catch(() => undefined);
  if (linked !== undefined) {
    if (existsSync(linked) && (await canUse(account, linked))) return linked;
    await rm(wanted);
  }
  await mkdir(wanted, { recursive: true });
  if (await canUse(account, wanted)) return wanted;
  return moveOut(wanted, account);
}

async function canUse(account: Account, folder: string): Promise<boolean> {
  if (account.uid === undefined) return true;
  // A mounted folder may refuse another owner. Only whether the account can write matters.
  await chown(folder, account.uid, account.gid ?? account.uid).catch(() => undefined);
  return canWrite(account, folder);
}

async function moveOut(wanted: string, account: Account): Promise<string> {
  const project = createHash('sha256').update(resolve(wanted)).digest('hex').slice(0, 16);
  for (const place of new Set(['/var/tmp', tmpdir()])) {
    const home = join(place, `user-management-data-${project}`);
    if (!(await isFitToReplace(home, account))) continue;
    await rm(home, { recursive: true, force: true });
    await mkdir(home, { mode: 0o700 });
    if (!(await canUse(account, home))) continue;
    if ((await readdir(wanted)).length > 0) await runAs({}, 'cp', ['-a', `${wanted}/.`, home]);
    await rm(wanted, { recursive: true });
    await symlink(home, wanted);
    return home;
  }
  throw new Error(`Neither ${wanted} nor /var/tmp can be written by the account with the id ${account.uid}`);
}

// A folder that another account created under this name could be a trap.
async function isFitToReplace(home: string, account: Account): Promise<boolean> {
  const found = await lstat(home).catch(() => undefined);
  return found === undefined || (found.isDirectory() && (found.uid === 0 || found.uid === account.uid));
}
