import type { Settings } from '../settings.ts';

/** What an engine that speaks PostgreSQL can do. All that differs from one to another is derived from this table. */
export type Engine = {
  /** `pg_try_advisory_lock`: of several instances one migrates. Without it the engine's own locks decide. */
  readonly hasAdvisoryLocks: boolean;
  /** Changes of the schema may share a transaction with other statements. Else each is sent by itself. */
  readonly hasTransactionalDdl: boolean;
  /** A session may be given settings as it begins. Else those of the role hold. */
  readonly hasSessionOptions: boolean;
  /** The isolation that sessions ask for; undefined where what the engine has is taken. */
  readonly isolation: 'read committed' | undefined;
  /** `lock_timeout` ends a wait for a row, and the error's `where` names the table. Else any time-out may be that. */
  readonly limitsLockWaits: boolean;
  /** `pg_stat_activity` shows the statements of other sessions. Else a server in reach is taken to run them. */
  readonly showsSessions: boolean;
  /** Dead rows are removed by autovacuum, which a table may tune. */
  readonly hasAutovacuum: boolean;
};

const ENGINES: Readonly<Record<Settings['postgres']['engine'], Engine>> = {
  postgresql: {
    hasAdvisoryLocks: true,
    hasTransactionalDdl: true,
    hasSessionOptions: true,
    isolation: 'read committed',
    limitsLockWaits: true,
    showsSessions: true,
    hasAutovacuum: true,
  },
  distributed: {
    hasAdvisoryLocks: false,
    hasTransactionalDdl: false,
    hasSessionOptions: false,
    isolation: undefined,
    limitsLockWaits: false,
    showsSessions: false,
    hasAutovacuum: false,
  },
};

/** The engine of SVC_POSTGRES_ENGINE; behind a pooler a session is somebody else's next, and is left as it is. */
export function engineOf({ engine, pooler }: Pick<Settings['postgres'], 'engine' | 'pooler'>): Engine {
  const profile = ENGINES[engine];
  return pooler === 'none' ? profile : { ...profile, hasAdvisoryLocks: false, hasSessionOptions: false };
}
