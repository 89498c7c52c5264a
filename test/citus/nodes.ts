import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { startDebianPostgres } from '../stage/debian-postgres.ts';
import { hastySettings } from '../stage/postgres.ts';

/** A coordinator and two workers of Citus, the coordinator first. */
export type Nodes = Awaited<ReturnType<typeof startNodes>>;

/** The folder of the programs of a PostgreSQL with Citus. */
const PROGRAMS = process.env.CITUS_BIN || '/usr/lib/postgresql/15/bin';

/** Citus runs two processes for each database, and copies while a directory is moved. */
const SETTINGS = {
  ...hastySettings,
  synchronous_commit: 'on',
  shared_preload_libraries: 'citus',
  wal_level: 'logical',
  max_prepared_transactions: 300,
  max_worker_processes: 200,
  'citus.node_conninfo': 'sslmode=prefer',
};

/** Starts the nodes. Nothing connects them yet. */
export async function startNodes() {
  const start = await findStart();
  return [await start(), await start(), await start()] as const;
}

async function findStart() {
  if (existsSync(join(dirname(PROGRAMS), 'lib/citus.so')))
    return () => startDebianPostgres(SETTINGS, dirname(PROGRAMS));
  if (!process.env.CITUS_BIN && (process.env.DOCKER_HOST || existsSync('/var/run/docker.sock')))
    return startContainer;
  // Before any test there is nothing to undo, and an error would be printed with its stack and its code.
  process.stderr.write(
    `There is no Citus beside ${PROGRAMS}: set CITUS_BIN to the folder of the programs of a PostgreSQL that has Citus.\n`,
  );
  process.exit(1);
}

/** A node in the network of the host, whose port it has. Written from the documentation of the image, and not tried. */
async function startContainer() {
  const { GenericContainer, Wait } = await import('testcontainers');
  const port = await freePort();
  const options = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const container = await new GenericContainer('citusdata/citus:13.2')
    .withNetworkMode('host')
    .withEnvironment({ POSTGRES_HOST_AUTH_METHOD: 'trust' })
    .withCommand(['postgres', ...options])
    .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
    .start();
  return {
    ...{ host: '127.0.0.1', port, user: 'postgres', password: '', database: 'postgres' },
    async kill() {
      await container.stop({ remove: false, timeout: 0 });
    },
    /** After `kill`, on the same port. */
    start: () => container.restart(),
    async stop() {
      await container.stop();
    },
  };
}
