import { join, resolve } from 'node:path';
import { freePort } from './free-port.ts';
import { accountFor, createWhole, homeFor, runAs, runnablePostgres } from './postgres/place.ts';
import { runServer, type ServerSettings } from './postgres/server.ts';

/** A running server: how to connect to it, its main process, and how to stop it. */
export type Postgres = Awaited<ReturnType<typeof startPostgres>>;

const host = '127.0.0.1';
const user = 'postgres';

/**
 * Starts the embedded PostgreSQL 18 on 127.0.0.1, where it trusts every client: it is for development and tests. It
 * ends with `stop()`, and also when this process dies in any way. Its files stay in `dataFolder` for the next start.
 * Without `port` it has a free one.
 *
 * @throws with the end of the server's log if it cannot start
 */
export async function startPostgres(options: {
  readonly dataFolder: string;
  readonly port?: number;
  readonly settings?: ServerSettings;
}) {
  const account = await accountFor(options.dataFolder);
  const home = await homeFor(resolve(options.dataFolder), account);
  const programs = await runnablePostgres(home, account);
  const place = { programs, home, cluster: join(home, 'cluster'), account };
  await createWhole(place.cluster, (draft) =>
    runAs(account, join(programs, 'bin', 'initdb'), [
      `--pgdata=${draft}`,
      `--username=${user}`,
      '--auth=trust',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      ...(options.settings?.fsync === 'off' ? ['--no-sync'] : []),
    ]),
  );

  const port = options.port ?? (await freePort());
  const server = await runServer(place, { ...options.settings, listen_addresses: host, port });
  const url = `postgres://${user}@${host}:${port}/postgres`;
  return { host, port, user, password: '', database: 'postgres', url, ...server };
}
