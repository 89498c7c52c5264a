/** Sessions with PostgreSQL and its hosts: everything that the executors use of them. */
export { DeadSessionWatch } from './dead-sessions.ts';
export { atEndOfPass } from './end-of-pass.ts';
export { type EngineProfile, engineProfile } from './engine-profile.ts';
export * from './faults.ts';
export * from './pending-statement.ts';
export { PostgresClient } from './postgres-client.ts';
export { PostgresHosts } from './postgres-hosts.ts';
export type { ReceivedRow, Row } from './rows.ts';
export type { Session } from './session.ts';
export { type PoolUser, SessionPool } from './session-pool.ts';
