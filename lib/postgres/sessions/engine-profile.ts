import type { Settings } from '../../settings/settings.ts';

/** An engine that speaks PostgreSQL's protocol. Every difference between engines follows from these facts. */
export type EngineProfile = {
  /**
   * Then changes of the schema may share a transaction with other statements, `lock_timeout` ends a wait for a row, the
   * error's `where` names the table, and a table may tune autovacuum.
   */
  readonly isPostgres: boolean;
  /**
   * PostgreSQL without a pooler. Then a session keeps settings and advisory locks, and `pg_stat_activity` shows it to other
   * sessions under the number that it knows.
   */
  readonly hasOwnSessions: boolean;
};

/** The engine of SVC_POSTGRES_ENGINE, behind the pooler of SVC_POSTGRES_POOLER. */
export function engineProfile(settings: Pick<Settings['postgres'], 'engine' | 'pooler'>): EngineProfile {
  const isPostgres = settings.engine === 'postgresql';
  return { isPostgres, hasOwnSessions: isPostgres && settings.pooler === 'none' };
}
