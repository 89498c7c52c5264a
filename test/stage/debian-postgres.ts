import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { accountFor, homeFor, runAs } from '../../host/development/postgres/place.ts';
import { runServer } from '../../host/development/postgres/server.ts';

const INSTALLED = '/usr/lib/postgresql';

/**
 * Starts the newest installed PostgreSQL of Debian's packages, or the one in a folder, on 127.0.0.1 with a cluster of its
 * own. `programs` has `pg_dump` and the other tools, which the embedded PostgreSQL does not have.
 */
export async function startDebianPostgres(
  settings: Readonly<Record<string, string | number>> = {},
  folderOfPrograms?: string,
) {
  const programs = folderOfPrograms ?? (await newestPrograms());
  const folder = await mkdtemp(join(tmpdir(), 'user-management-debian-postgres-'));
  const account = await accountFor(folder);
  const home = await homeFor(folder, account);
  const cluster = join(home, 'cluster');
  const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'];
  await runAs(account, join(programs, 'bin/initdb'), [`--pgdata=${cluster}`, ...options]);
  const port = await freePort();
  const run = () =>
    runServer({ programs, home, cluster, account }, { ...settings, listen_addresses: '127.0.0.1', port });
  let server = await run();

  return {
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password: '',
    database: 'postgres',
    programs: join(programs, 'bin'),
    dataFolder: home,
    async kill() {
      process.kill(server.processId, 'SIGKILL');
      await server.stop();
    },
    /** After `kill`, on the same port. */
    async start() {
      server = await run();
    },
    async stop() {
      await server.stop();
      await rm(home, { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function newestPrograms(): Promise<string> {
  const versions = existsSync(INSTALLED) ? await readdir(INSTALLED) : [];
  const complete = versions.filter((version) => existsSync(join(INSTALLED, version, 'bin/initdb')));
  const newest = complete.toSorted((a, b) => Number(b) - Number(a))[0];
  if (!newest) throw new Error(`no PostgreSQL in ${INSTALLED}: apt-get install postgresql`);
  return join(INSTALLED, newest);
}
