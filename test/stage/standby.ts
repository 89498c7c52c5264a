import { cp, mkdtemp, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accountFor, runAs } from '../../host/development/postgres/place.ts';
import { type DisposablePostgres, startDisposablePostgres } from './disposable-postgres.ts';

/**
 * Starts a hot standby of a PostgreSQL, which restarts meanwhile: a copy of its files that follows its write-ahead
 * log.
 * `settings` are added to its configuration, for example `recovery_min_apply_delay`.
 */
export async function startStandby(
  primary: DisposablePostgres,
  settings: Readonly<Record<string, string>> = {},
): Promise<DisposablePostgres> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'user-management-disposable-'));
  const account = await accountFor(dataFolder);
  await primary.shutDown();
  const cluster = join(dataFolder, 'cluster');
  await cp(join(await realpath(primary.dataFolder), 'cluster'), cluster, {
    recursive: true,
    preserveTimestamps: true,
  });
  await primary.start();
  await writeFile(join(cluster, 'standby.signal'), '');
  if (account.uid !== undefined) await runAs({}, 'chown', ['-R', String(account.uid), cluster]);
  const { host, port, user } = primary;
  return startDisposablePostgres({
    dataFolder,
    settings: { primary_conninfo: `host=${host} port=${port} user=${user}`, ...settings },
  });
}
