import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
  if (!existsSync(join(dirname(PROGRAMS), 'lib/citus.so')))
    throw new Error(`no Citus beside ${PROGRAMS}: set CITUS_BIN to the programs of a PostgreSQL that has it`);
  const start = () => startDebianPostgres(SETTINGS, dirname(PROGRAMS));
  return [await start(), await start(), await start()] as const;
}
