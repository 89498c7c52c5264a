import type { ClientBase, ClientConfig } from 'pg';
import type { Settings } from '../../settings/settings.ts';
import { engineProfile } from '../engine-profile.ts';
import { readPassword } from './password.ts';

/** Parameters of PostgreSQL, for a session. */
type Session = Readonly<Record<string, string>>;

/** PostgreSQL notices within half a second that we gave up on a statement, and stops it. */
export const SESSION: Session = {
  // Lists of values have null among them, whatever the role has set.
  array_nulls: 'on',
  client_connection_check_interval: '500',
  idle_in_transaction_session_timeout: '10000',
};

/** What every connection has in common, here to the first host. */
export function clientConfig(postgres: Settings['postgres'], session = SESSION): ClientConfig {
  const { user, database, sslMode } = postgres;
  const { hasSessionOptions, isolation } = engineProfile(postgres);
  const [{ host, port }] = postgres.servers;
  return {
    host,
    port,
    user,
    // Asked for at every connection, so that a secret that changes is followed.
    password: () => readPassword(postgres),
    database,
    sslnegotiation: 'postgres',
    ssl: sslMode !== 'disable' && { rejectUnauthorized: sslMode === 'verify-full' },
    application_name: 'user-management-service',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Nothing rests on what a stricter isolation would give, so none is taken over from the role or the database: it
    // costs conflicts.
    ...(hasSessionOptions && {
      options: formatOptions({ ...(isolation && { default_transaction_isolation: isolation }), ...session }),
    }),
  };
}

/** As the server takes them from a command line: a space in a value is escaped. */
function formatOptions(session: Session): string {
  return Object.entries(session)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ');
}

/** Breaks a connection off: whoever waits for an answer on it is told at once, whatever the server does. */
export function abandon(client: ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
