import type { ClientConfig } from 'pg';
import { readPassword } from '../../settings/password.ts';
import type { Settings } from '../../settings/settings.ts';
import { engineProfile } from '../engine-profile.ts';

type Postgres = Settings['postgres'];

/** Where a PostgreSQL listens. */
export type Host = Postgres['servers'][number];

/** Parameters of PostgreSQL for a session. */
export type SessionParameters = Readonly<Record<string, string>>;

/** PostgreSQL notices within half a second that we gave up on a statement, and stops it. */
export const SESSION: SessionParameters = {
  // Without it, null in a list of values would be a text. The role may have turned it off.
  array_nulls: 'on',
  client_connection_check_interval: '500',
  // A plan is kept, even if it was made for an empty table. It must use the indexes.
  enable_seqscan: 'off',
  idle_in_transaction_session_timeout: '10000',
};

/** The configuration of a connection to this host. Its session has these parameters, if the engine accepts any. */
export function clientConfig(postgres: Postgres, host: Host, parameters: SessionParameters): ClientConfig {
  const { user, database, sslMode } = postgres;
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
    // The service does not need a stricter isolation, which costs conflicts. The role or the database may have set one.
    ...(engineProfile(postgres).hasOwnSessions && {
      options: formatOptions({ default_transaction_isolation: 'read committed', ...parameters }),
    }),
  };
}

/** As the server takes them from a command line: a space in a value is escaped. */
function formatOptions(parameters: SessionParameters): string {
  return Object.entries(parameters)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ');
}
