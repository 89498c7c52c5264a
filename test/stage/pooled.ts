import type { TestProject } from 'vitest/node';
import { startPgBouncer } from './pgbouncer.ts';

/** Whether the service of the tests reaches PostgreSQL through PgBouncer in transaction mode. */
export const isPooled = process.env.TEST_POSTGRES_POOLER === 'transaction';

/** Where PgBouncer is, and before which port of PostgreSQL it stands. */
export type PoolerInFront = { readonly host: string; readonly port: number; readonly inFrontOf: number };

declare module 'vitest' {
  interface ProvidedContext {
    pooler: PoolerInFront;
  }
}

/** What README asks the operator to set, since a pooler takes no wishes for a session; the limit is above any in the tests. */
export const settingsBehindPooler = (database: string): readonly string[] => [
  `ALTER DATABASE ${database} SET statement_timeout = '20s'`,
  `ALTER DATABASE ${database} SET client_connection_check_interval = '500ms'`,
];

/** For each database of a test; the service asks for ten, so that they are really lent to one after the other. */
const CONNECTIONS = 5;

/** Puts PgBouncer in front of the PostgreSQL of all tests. */
export default async function (project: TestProject): Promise<() => Promise<void>> {
  const { postgres } = project.getProvidedContext();
  const pooler = await startPgBouncer(postgres, { poolSize: CONNECTIONS });
  project.provide('pooler', { host: pooler.host, port: pooler.port, inFrontOf: postgres.port });
  return pooler.stop;
}
