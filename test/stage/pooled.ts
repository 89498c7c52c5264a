import type { TestProject } from 'vitest/node';
import { startPgBouncer } from './pgbouncer.ts';

/** Whether the service of the tests reaches PostgreSQL through PgBouncer in transaction mode. */
export const isPooled = process.env.TEST_POSTGRES_POOLER === 'transaction';

/** The address of PgBouncer, and the port of PostgreSQL behind it. */
export type PoolerInFront = { readonly host: string; readonly port: number; readonly inFrontOf: number };

declare module 'vitest' {
  interface ProvidedContext {
    pooler: PoolerInFront;
  }
}

/** Connections per database. The service opens ten, so that PgBouncer really shares them. */
const CONNECTIONS = 5;

/** Puts PgBouncer in front of the PostgreSQL of all tests. */
export default async function (project: TestProject): Promise<() => Promise<void>> {
  const { postgres } = project.getProvidedContext();
  const pooler = await startPgBouncer(postgres, { poolSize: CONNECTIONS });
  project.provide('pooler', { host: pooler.host, port: pooler.port, inFrontOf: postgres.port });
  return pooler.stop;
}
