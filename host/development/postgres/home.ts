import { existsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readdir, realpath, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Account, canRun, runAs } from './account.ts';

/**
 * Returns the folder for the server's files: `wanted` or, if the server's account cannot reach it, a folder of that
 * account to which `wanted` becomes a link. Deleting `wanted` starts with an empty database.
 */
export async function homeFor(wanted: string, account: Account): Promise<string> {
  // A link may be left without the folder that it leads to.
  if (!existsSync(wanted)) await rm(wanted, { force: true });
  await mkdir(wanted, { recursive: true });
  const home = await realpath(wanted);
  if (await giveTo(account, home)) return home;

  const moved = await mkdtemp('/var/tmp/user-management-data-');
  await runAs({}, 'cp', ['-a', `${home}/.`, moved]);
  if (!(await giveTo(account, moved)))
    throw new Error(`The account ${account.uid} can write neither in ${home} nor in /var/tmp`);
  await rm(wanted, { recursive: true });
  await symlink(moved, wanted);
  return moved;
}

/** Returns whether `account` can write in `folder` afterwards. */
async function giveTo(account: Account, folder: string): Promise<boolean> {
  if (account.uid === undefined) return true;
  // A mounted folder may refuse another owner. Only whether the account can write matters.
  await chown(folder, account.uid, account.gid ?? account.uid).catch(() => undefined);
  return canRun(account, '/bin/sh', ['-c', 'cd "$0" && [ -w . ]', folder]);
}

/** Creates `folder` by `fill`, unless it exists. It has its name only when it is complete, whenever the start is cut off. */
export async function createWhole(folder: string, fill: (draft: string) => Promise<unknown>): Promise<void> {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  for (const name of await readdir(parent)) {
    if (name.startsWith(`${basename(folder)}.`))
      await rm(join(parent, name), { recursive: true, force: true, maxRetries: 9 });
  }
  // Every attempt has its own draft, because an initdb whose launcher was killed continues for a moment.
  const draft = `${folder}.${process.pid}`;
  await fill(draft);
  await rename(draft, folder);
}
