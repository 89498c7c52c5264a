import type { Settings } from '../settings/settings.ts';

/** The abilities of an engine that speaks PostgreSQL's protocol. Every difference between engines follows from them. */
export type EngineProfile = {
  /** `pg_try_advisory_lock`: one of several instances migrates. Without it, the engine's own locks decide. */
  readonly hasAdvisoryLocks: boolean;
  /** Changes of the schema may share a transaction with other statements. Otherwise each is sent by itself. */
  readonly hasTransactionalDdl: boolean;
  /** A session accepts settings at its start. Otherwise those of the role apply. */
  readonly hasSessionOptions: boolean;
  /**
   * `lock_timeout` ends a wait for a row, and the error's `where` names the table. Otherwise any timeout may be one.
   */
  readonly limitsLockWaits: boolean;
  /**
   * `pg_stat_activity` shows the statements of other sessions, by the numbers that these know. Otherwise a reachable
   * server is assumed to run them.
   */
  readonly showsSessions: boolean;
  /** Autovacuum removes dead rows, and a table may tune it. */
  readonly hasAutovacuum: boolean;
};

/** The engine of SVC_POSTGRES_ENGINE. Behind a pooler, sessions are shared with others, so they get no settings. */
export function engineProfile({
  engine,
  pooler,
}: Pick<Settings['postgres'], 'engine' | 'pooler'>): EngineProfile {
  const isPostgres = engine === 'postgresql';
  const hasOwnSessions = isPostgres && pooler === 'none';
  return {
    hasAdvisoryLocks: hasOwnSessions,
    hasTransactionalDdl: isPostgres,
    hasSessionOptions: hasOwnSessions,
    limitsLockWaits: isPostgres,
    showsSessions: hasOwnSessions,
    hasAutovacuum: isPostgres,
  };
}
