import type { TestProject } from 'vitest/node';
import { startDebianPostgres } from '../stage/debian-postgres.ts';
import { hastySettings } from '../stage/postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of `pg_dump` and `pg_restore`. */
    postgresPrograms: string;
  }
}

/** Gives the tests of this folder Debian's PostgreSQL and its tools. */
export default async function (project: TestProject): Promise<() => Promise<void>> {
  const { programs, stop, host, port, user, password, database } = await startDebianPostgres({
    ...hastySettings,
    wal_level: 'logical',
  });
  project.provide('postgres', { host, port, user, password, database });
  project.provide('postgresPrograms', programs);
  return stop;
}
