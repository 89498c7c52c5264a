/** The engine: everything that the service uses of it. README.md says how it works. */
export { booleanAt, readFields, timestampAt } from './binary-row.ts';
export { Database } from './database.ts';
export { MigrationSession, type SendSql } from './migration-session.ts';
export type { PreparedStatement } from './prepared-statement.ts';
export type { StatementKind } from './sender.ts';
export {
  causeOf,
  type EngineProfile as Engine,
  endsSession,
  isLockTimeout,
  isMissingTable,
  isReadOnly,
  isSchemaConflict,
  type ReceivedRow as ListRow,
  reachedTimeLimit,
  violatesUnique,
} from './sessions/index.ts';
export { clock, eachGiven, isInSchema } from './statement-parts.ts';
export { repeatUntilDone, type SqlType, type Statements } from './statements.ts';
