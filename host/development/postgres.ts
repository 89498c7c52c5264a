import { join, resolve } from 'node:path';
import { freePort } from './free-port.ts';
import { accountFor, runAs } from './postgres/account.ts';
import { createWhole, homeFor, runnablePostgres, type ServerPlace } from './postgres/place.ts';
import { type RunningServer, runServer, takeOver } from './postgres/server.ts';

/** The folder of the server's files, its port (a free one if absent), and its settings. */
export interface PostgresOptions {
  readonly dataFolder: string;
  readonly port?: number;
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** A running server: how to connect to it and, from `RunningServer`, how to stop it. */
export interface Postgres extends RunningServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly url: string;
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
  const home = await homeFor(resolve(dataFolder), account);
  const programs = await runnablePostgres(home, account);
  const place: ServerPlace = { programs, home, cluster: join(home, 'cluster'), account };
  await takeOver(place);
  await createWhole(place.cluster, (draft) => createCluster(place, draft, settings.fsync !== 'off'));

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

async function createCluster({ programs, account }: ServerPlace, folder: string, isDurable: boolean) {
  await runAs(account, join(programs, 'bin', 'initdb'), [
    `--pgdata=${folder}`,
    `--username=${user}`,
    '--auth=trust',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(isDurable ? [] : ['--no-sync']),
  ]);
}
