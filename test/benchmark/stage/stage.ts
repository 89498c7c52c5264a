import { execFile } from 'node:child_process';
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { startPostgres } from '../../../host/development/postgres.ts';
import type { Variables } from '../../../lib/settings/environment.ts';
import { builtHost } from '../../stage/build.ts';
import { startHttpFront } from '../../stage/http-front.ts';
import { isLeftBehind, removeDataFolder } from '../../stage/postgres.ts';
import { inDatabase } from '../../stage/rows.ts';
import { environmentOf } from '../../stage/service.ts';
import type { Progress } from '../report/progress.ts';
import { startCredentials } from './credentials.ts';
import { fill } from './users.ts';

/**
 * As PostgreSQL comes, but for three things that would make a run unlike the next: all databases fit into memory, no
 * checkpoint falls into a run by its size, and dead rows are removed between runs (by `vacuum`), not within one.
 */
const SETTINGS = {
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
  max_connections: 400,
};

/** Has the schema, and no users. */
const EMPTY = 'migrated';
const FILLED = 'filled';
const FOLDERS = join(tmpdir(), 'user-management-benchmark-');

/** The collector of spans takes them all. */
const forget = async () => ({ status: 200, headers: { 'Content-Type': 'application/json' }, body: '{}' });

export type Stage = Awaited<ReturnType<typeof startStage>>;

type Options = {
  readonly users: number;
  /** Whether there are many tokens to be used once each. */
  readonly needsFreshTokens: boolean;
  readonly sharedBuffers: string;
  readonly progress: Progress;
};

/** Starts PostgreSQL with this many users, the identity provider and the collector of spans; builds the host. */
export async function startStage({ users, needsFreshTokens, sharedBuffers, progress }: Options) {
  progress('building the host');
  const main = await builtHost();
  progress('signing tokens');
  const [credentials, collector] = await Promise.all([
    startCredentials(needsFreshTokens),
    startHttpFront(forget),
  ]);
  progress('starting PostgreSQL');
  await removeLeftovers();
  const folder = await mkdtemp(FOLDERS);
  const dataFolder = join(folder, 'postgres');
  const postgres = await startPostgres({
    dataFolder,
    settings: { ...SETTINGS, shared_buffers: sharedBuffers },
  });

  const urlOf = (database: string) => postgres.url.replace(/[^/]*$/, database);
  const variablesOf = (database: string): Variables =>
    environmentOf({ ...postgres, database, name: database }, credentials.issuer);

  const query = (database: string, statement: string) => inDatabase({ ...postgres, database }, statement);

  const createFrom = (template: string, name: string) =>
    query('postgres', `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);

  await query('postgres', `CREATE DATABASE ${EMPTY}`);
  await promisify(execFile)(process.execPath, [main.replace('main.mjs', 'migrate.mjs')], {
    env: variablesOf(EMPTY),
  });
  await createFrom(EMPTY, FILLED);
  await fill((statement) => query(FILLED, statement), users, progress);
  const [version] = await query('postgres', 'SHOW server_version');

  return {
    main,
    users,
    credentials,
    collector,
    urlOf,
    variablesOf,
    postgresProcess: postgres.processId,
    postgresVersion: String(version?.server_version),
    /** Creates a database for one target, with the same users as every other, or with this number of users. */
    async createDatabase(name: string, number = users): Promise<void> {
      await createFrom(number === users ? FILLED : EMPTY, name);
      if (number !== users) await fill((statement) => query(name, statement), number, progress);
    },
    vacuum: (database: string) => query(database, 'VACUUM (ANALYZE)'),
    async stop(): Promise<void> {
      await Promise.all([collector.stop(), credentials.issuer.stop(), postgres.stop()]);
      await removeDataFolder(dataFolder);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// A run that is cut off cannot tidy up: its server ends by itself, its files wait for the next run.
async function removeLeftovers(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(basename(FOLDERS)));
  for (const folder of names.map((name) => join(tmpdir(), name))) {
    const data = await realpath(join(folder, 'postgres')).catch(() => undefined);
    if (!data || !(await isLeftBehind(data))) continue;
    await rm(data, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }
}
