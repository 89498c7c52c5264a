import { execFile } from 'node:child_process';
import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { startPostgres } from '../../../host/development/postgres.ts';
import type { Variables } from '../../../lib/settings/settings.ts';
import { builtHost } from '../../stage/build.ts';
import { startHttpFront } from '../../stage/http-front.ts';
import { isLeftBehind, removeDataFolder } from '../../stage/postgres.ts';
import { inDatabase } from '../../stage/rows.ts';
import { environmentOf } from '../../stage/service.ts';
import type { Progress } from '../report/progress.ts';
import { startCredentials } from './credentials.ts';
import { fill } from './fill.ts';

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

const TEMPLATE = 'filled';
const FOLDERS = join(tmpdir(), 'user-management-benchmark-');

/** The collector of spans takes them all. */
const forget = async () => ({ status: 200, headers: { 'Content-Type': 'application/json' }, body: '{}' });

/** What every target runs against. */
export type Stage = Awaited<ReturnType<typeof startStage>>;

type Options = {
  readonly users: number;
  readonly freshTokens?: number;
  readonly sharedBuffers: string;
  /** Where PostgreSQL's files stay for the next run; without it they go with the stage. */
  readonly kept?: string | undefined;
  readonly progress: Progress;
};

/** Starts PostgreSQL with this many users, the identity provider and the collector of spans; builds the host. */
export async function startStage({ users, freshTokens, sharedBuffers, kept, progress }: Options) {
  progress('building the host');
  const main = await builtHost();
  progress('signing tokens');
  const [credentials, collector] = await Promise.all([startCredentials(freshTokens), startHttpFront(forget)]);
  progress('starting PostgreSQL');
  await removeLeftovers();
  const folder = await mkdtemp(FOLDERS);
  const dataFolder = kept ?? join(folder, 'postgres');
  const postgres = await startPostgres({
    dataFolder,
    settings: { ...SETTINGS, shared_buffers: sharedBuffers },
  });
  const tokensFile = join(folder, 'tokens.json');
  await writeFile(tokensFile, JSON.stringify(credentials.fresh));

  const urlOf = (database: string) => postgres.url.replace(/[^/]*$/, database);
  const variablesOf = (database: string): Variables =>
    environmentOf({ ...postgres, database, name: database, drop: async () => [] }, credentials.issuer);

  const query = (database: string, statement: string) => inDatabase({ ...postgres, database }, statement);

  await query('postgres', `DROP DATABASE IF EXISTS ${TEMPLATE}`);
  await query('postgres', `CREATE DATABASE ${TEMPLATE}`);
  await promisify(execFile)(process.execPath, [main.replace('main.mjs', 'migrate.mjs')], {
    env: variablesOf(TEMPLATE),
  });
  await fill(query, TEMPLATE, users, progress);
  const [version] = await query('postgres', 'SHOW server_version');

  return {
    main,
    users,
    credentials,
    collector,
    tokensFile,
    urlOf,
    variablesOf,
    query,
    postgresProcess: postgres.processId,
    postgresVersion: String(version?.server_version),
    /** A database of its own for one target, with the same users as every other. */
    async createDatabase(name: string): Promise<string> {
      await query('postgres', `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} STRATEGY FILE_COPY`);
      return name;
    },
    vacuum: (database: string) => query(database, 'VACUUM (ANALYZE)'),
    async stop(): Promise<void> {
      await Promise.all([collector.stop(), credentials.issuer.stop(), postgres.stop()]);
      if (!kept) await removeDataFolder(dataFolder);
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
