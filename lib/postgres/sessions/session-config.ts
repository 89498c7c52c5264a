import type { ClientConfig } from 'pg';
import { readPassword } from '../../settings/password.ts';
import type { PostgresServer, Settings } from '../../settings/settings.ts';
import { engineProfile } from './engine-profile.ts';

type Postgres = Settings['postgres'];

export type SessionParameters = Readonly<Record<string, string>>;

export const SESSION: SessionParameters = {
  // PostgreSQL notices within half a second that a connection was closed, and stops its statement.
  client_connection_check_interval: '500',
  // A plan is kept, even if it was made for an empty table. It must use the indexes.
  enable_seqscan: 'off',
  idle_in_transaction_session_timeout: '10000',
};

/** The role or the database may have other values. */
const EVERY_SESSION: SessionParameters = {
  // A stricter isolation costs conflicts.
  default_transaction_isolation: 'read committed',
  // It takes longer to compile than any statement of the service runs.
  jit: 'off',
  // A policy refuses a statement, and does not hide rows from it.
  row_security: 'off',
};

/** They take 0.3 to 0.7 s of a core. */
const MAX_SCRAM_ITERATIONS = 2_000_000;

/** The configuration of a connection to this host. Its session has these parameters, if the engine accepts any. */
export function sessionConfig(postgres: Postgres, host: PostgresServer, parameters: SessionParameters) {
  const { user, database, sslMode } = postgres;
  // As the server takes them from a command line.
  const options = Object.entries({ ...EVERY_SESSION, ...parameters }).map(
    ([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`,
  );
  return {
    ...host,
    user,
    // Asked for at every connection, so that a secret that changes is followed.
    password: () => readPassword(postgres),
    database,
    sslnegotiation: 'postgres',
    ssl: sslMode !== 'disable' && { rejectUnauthorized: sslMode === 'verify-full' },
    application_name: 'user-management-service',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    scramMaxIterations: MAX_SCRAM_ITERATIONS,
    ...(engineProfile(postgres).hasOwnSessions && { options: options.join(' ') }),
  } satisfies ClientConfig & { scramMaxIterations: number };
}
