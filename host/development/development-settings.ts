import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { freePort } from './free-port.ts';

// The same ports at every start if possible: tokens name their issuer, and database tools are configured once.
const postgresPorts = [54320, 54321, 54322, 54323, 54324];
const issuerPorts = [9000, 9001, 9002, 9003, 9004];

/**
 * Completes the environment with the loopback address, and with the servers that `npm run dev` starts: PostgreSQL unless SVC_POSTGRES_HOST is set, and
 * the token issuer unless SVC_OAUTH_JWKS_URI is set. Returns the settings of the service, and the ports of the servers
 * to start, which are undefined if the environment names other servers.
 *
 * @throws {SettingsError} names every setting that is not valid
 */
export async function readDevelopmentSettings(environment: Variables) {
  const issuerPort = environment.SVC_OAUTH_JWKS_URI ? undefined : await freePort(issuerPorts);
  const issuer = `http://127.0.0.1:${issuerPort}`;
  // The embedded server has only this user and this database, and no encryption.
  const embedded = environment.SVC_POSTGRES_HOST
    ? undefined
    : {
        SVC_POSTGRES_HOST: '127.0.0.1',
        SVC_POSTGRES_USER: 'postgres',
        SVC_POSTGRES_DB: 'postgres',
        SVC_POSTGRES_SSLMODE: 'disable',
      };
  const settings = readSettings(
    { ...environment, ...embedded },
    {
      SVC_ENV: 'development',
      // The issuer gives a token to every client that asks.
      SVC_HOST: '127.0.0.1',
      SVC_OAUTH_AUDIENCE: 'user-management-service',
      SVC_OAUTH_ROLES_CLAIM: 'aud',
      ...(issuerPort && { SVC_OAUTH_ISSUER: issuer, SVC_OAUTH_JWKS_URI: `${issuer}/jwks` }),
      ...(embedded && { SVC_POSTGRES_PORT: String(await freePort(postgresPorts)) }),
    },
  );
  return { settings, issuerPort, postgresPort: embedded && settings.postgres.servers[0].port };
}
