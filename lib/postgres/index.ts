/** The engine: everything that the service uses of it. README.md says how it works. */
export { booleanAt, readFields, timestampAt } from './binary-row.ts';
export { Database } from './database.ts';
export { MigrationSession, type SendSql } from './migration-session.ts';
export type { EngineProfile as Engine } from './sessions/engine-profile.ts';
export {
  causeOf,
  endsSession,
  isLockTimeout,
  isMissingTable,
  isReadOnly,
  isSchemaConflict,
  reachedTimeLimit,
  violatesUnique,
} from './sessions/faults.ts';
export type { ReceivedRow as ListRow } from './sessions/rows.ts';
export type { StatementKind } from './sessions/statement-text.ts';
export { clock, eachGiven, isInSchema } from './statement-parts.ts';
export { type PreparedStatement, repeatUntilDone, type SqlType, type Statements } from './statements.ts';
