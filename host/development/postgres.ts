import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { freePort } from './free-port.ts';
import { accountFor, runAs } from './postgres/account.ts';
import { runnablePostgres } from './postgres/binaries.ts';
import { homeFor } from './postgres/home.ts';
import { runServer } from './postgres/server.ts';
import { type ServerPlace, takeOver } from './postgres/take-over.ts';

/** The folder of the server's files, its port (a free one if absent), and its settings. */
export interface PostgresOptions {
  readonly dataFolder: string;
  readonly port?: number;
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** A running server: how to connect to it, the id of its main process, and how to stop it. */
export interface Postgres {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly url: string;
  readonly processId: number;
  stop(): Promise<void>;
}

const host = '127.0.0.1';
const user = 'postgres';

/**
 * Starts the embedded PostgreSQL 18 on 127.0.0.1, where it trusts every client: it is for development and tests. It
 * ends with `stop()`, and also when this process dies in any way. Its files stay for the next start.
 *
 * @throws with the end of the server's log if it cannot start
 */
export async function startPostgres({ dataFolder, port, settings = {} }: PostgresOptions): Promise<Postgres> {
  const account = await accountFor(dataFolder);
  const programs = await runnablePostgres(account);
  const home = await homeFor(resolve(dataFolder), account);
  const place: ServerPlace = { programs, home, cluster: join(home, 'cluster'), account };
  await takeOver(place);
  if (!existsSync(place.cluster)) await createCluster(place, settings.fsync !== 'off');

  for (let attempt = 1; ; attempt += 1) {
    const listenOn = port ?? (await freePort());
    try {
      const server = await runServer(place, { ...settings, listen_addresses: host, port: listenOn });
      const url = `postgres://${user}@${host}:${listenOn}/postgres`;
      return { host, port: listenOn, user, password: '', database: 'postgres', url, ...server };
    } catch (error) {
      // A free port can be taken before the server has it.
      const isLost = port === undefined && String(error).includes('could not bind');
      if (!isLost || attempt === 5) throw error;
    }
  }
}

async function createCluster({ programs, home, cluster, account }: ServerPlace, isDurable: boolean) {
  // Every attempt has its own folder, because an initdb whose launcher was killed continues for a moment.
  const unfinished = `${cluster}.${process.pid}`;
  for (const name of await readdir(home)) {
    if (name.startsWith('cluster.'))
      await rm(join(home, name), { recursive: true, force: true, maxRetries: 9 });
  }
  await runAs(account, join(programs, 'bin', 'initdb'), [
    `--pgdata=${unfinished}`,
    `--username=${user}`,
    '--auth=trust',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(isDurable ? [] : ['--no-sync']),
  ]);
  // A cluster has its final name only when it is complete, whenever the start is cut off.
  await rename(unfinished, cluster);
}
