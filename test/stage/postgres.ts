import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { isServed } from '../../host/development/postgres/server.ts';
import { startPostgres } from '../../host/development/postgres.ts';
import { connectNodes, createDirectory, isCitus } from './citus.ts';
import { distributedHabits, isDistributed } from './distributed.ts';
import { hold } from './locks.ts';
import { isPooled } from './pooled.ts';
import { inDatabase, type PostgresServer } from './rows.ts';
import { SEED } from './seed.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The PostgreSQL of all tests, with a database for administration. */
    postgres: PostgresServer;
    /** Version 14 has the locales of libc only. Undefined in suites that start their own PostgreSQL. */
    postgresVersion?: number;
  }
}

const temporary = join(tmpdir(), 'user-management-embedded-');

/** The settings of a PostgreSQL whose data may be lost. */
export const hastySettings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: 300,
} as const;

/** Gives all tests one real PostgreSQL: that of TEST_POSTGRES_URL, otherwise the embedded one. */
export default async function (project: TestProject): Promise<() => Promise<void>> {
  const stage = given(process.env.TEST_POSTGRES_URL) ?? (await embedded());
  const [response] = await query(stage.server, 'SHOW server_version');
  process.stdout.write(
    `Tests run against PostgreSQL ${response?.server_version}, ${stage.title}, with FUZZ_SEED=${SEED}\n`,
  );
  project.provide('postgres', stage.server);
  project.provide('postgresVersion', Number.parseInt(String(response?.server_version), 10));
  return stage.strike;
}

/** An encoding, or a locale as options of CREATE DATABASE. */
export type DatabaseOptions = { readonly encoding?: string; readonly locale?: string };

/** Creates an empty database with a random name. `drop()` removes it with any remaining sessions. */
export async function createDatabase({ encoding, locale = '' }: DatabaseOptions = {}) {
  // This package cannot be loaded outside of a test, where this file is a global set-up.
  const { inject } = await import('vitest');
  const server = inject('postgres');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const provider = inject('postgresVersion') === 14 ? '' : 'LOCALE_PROVIDER libc';
  // The locale C supports every encoding.
  const options = encoding ? `ENCODING ${encoding} ${provider} LC_COLLATE 'C' LC_CTYPE 'C'` : locale;
  for (const node of isCitus ? inject('citus') : [server])
    await query(node, `CREATE DATABASE ${name} TEMPLATE template0 ${options}`);
  if (isCitus) await connectOnCitus(inject('citus'), name);
  else if (isDistributed) await query({ ...server, database: name }, ...distributedHabits(name));
  return {
    ...server,
    name,
    database: name,
    /** The address for the service, instead of PostgreSQL's own. */
    ...(isPooled && { pooler: inject('pooler') }),
    /** Runs statements as administrator, and resolves with the rows of the last one. */
    query: (...statements: readonly string[]) => inDatabase({ ...server, database: name }, ...statements),
    drop: async (): Promise<unknown> => {
      for (const node of isCitus ? inject('citus') : [server])
        await query(node, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      return undefined;
    },
  };
}

/** Makes the databases of the nodes one of Citus. All tables are in a schema that lies on one worker. */
async function connectOnCitus(nodes: readonly PostgresServer[], name: string): Promise<void> {
  const [coordinator] = nodes as [PostgresServer];
  // A new node gets the roles of all databases, which two sessions cannot alter at the same time.
  const lock = await hold(coordinator, 'SELECT pg_advisory_xact_lock(1)');
  await connectNodes(nodes, name).finally(lock.release);
  await createDirectory(coordinator, name, 'directory');
  await query(
    { ...coordinator, database: name },
    // Tests change and reset the settings of the database.
    `ALTER ROLE ${coordinator.user} IN DATABASE ${name} SET search_path = directory`,
    `ALTER DATABASE ${name} SET jit = off`,
    `ALTER DATABASE ${name} SET client_connection_check_interval = '500ms'`,
  );
}

/** As administrator, who does not wait for a server that is not there. */
const query = (server: PostgresServer, ...statements: readonly string[]) =>
  inDatabase({ ...server, connectionTimeoutMillis: 10_000 }, ...statements);

function given(url: string | undefined) {
  if (!url) return undefined;
  const { hostname, port, username, password, pathname } = new URL(url);
  const server = {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username || 'postgres'),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || 'postgres',
  };
  return {
    title: `the one of TEST_POSTGRES_URL at ${server.host}:${server.port}`,
    server,
    strike: async () => {},
  };
}

async function embedded() {
  await removeLeftovers();
  const dataFolder = await mkdtemp(temporary);
  const { stop, host, port, user, password, database } = await startPostgres({
    dataFolder,
    settings: hastySettings,
  });
  return {
    title: 'the embedded one',
    server: { host, port, user, password, database },
    async strike() {
      await stop();
      await removeDataFolder(dataFolder);
    },
  };
}

// A killed run cannot clean up. Its PostgreSQL ends by itself, and the next run removes its files.
async function removeLeftovers(): Promise<void> {
  const names = await readdir(dirname(temporary));
  const folders = names.filter((name) => name.startsWith(basename(temporary)));
  for (const folder of folders.map((name) => join(dirname(temporary), name))) {
    // Another account's folder is left to that account.
    if (await isLeftBehind(folder)) await removeDataFolder(folder).catch(() => undefined);
  }
}

/** Whether an embedded PostgreSQL has ended at least a minute ago, and nothing has removed its files. */
export async function isLeftBehind(folder: string): Promise<boolean> {
  const log = await stat(join(folder, 'server.log')).catch(() => undefined);
  const isOld = log !== undefined && log.mtimeMs < Date.now() - 60_000;
  return isOld && !(await isServed(join(folder, 'cluster')));
}

/** Removes the files of an embedded PostgreSQL. If its account cannot access the folder, a link in its place leads to them. */
export async function removeDataFolder(folder: string): Promise<void> {
  const data = await realpath(folder).catch(() => folder);
  await rm(data, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
