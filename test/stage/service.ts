import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startHost } from '../../host/host.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { callerOf, untilReady } from './caller.ts';
import { isCitus } from './citus.ts';
import { isDistributed } from './distributed.ts';
import { isPooled } from './pooled.ts';
import { createDatabase, type DatabaseOptions } from './postgres.ts';
import { inDatabase } from './rows.ts';
import { startIssuer } from './tokens.ts';

type Database = Awaited<ReturnType<typeof createDatabase>>;

/** The variables of a service in production with this database and this issuer, on a free port, without tracing. */
export function environmentOf(
  { host, port, user, password, name, pooler }: Omit<Database, 'drop' | 'query'>,
  {
    issuer,
    jwksUri,
    audience,
  }: Pick<Awaited<ReturnType<typeof startIssuer>>, 'issuer' | 'jwksUri' | 'audience'>,
): Variables {
  // A test with a proxy or pooler in between has another port.
  const server = port === pooler?.inFrontOf ? pooler : { host, port };
  return {
    SVC_ENV: 'production',
    SVC_OTEL_ENABLED: 'false',
    SVC_HOST: '127.0.0.1',
    SVC_PORT: '0',
    SVC_OAUTH_ISSUER: issuer,
    SVC_OAUTH_JWKS_URI: jwksUri,
    SVC_OAUTH_AUDIENCE: audience,
    SVC_POSTGRES_HOST: server.host,
    SVC_POSTGRES_PORT: String(server.port),
    SVC_POSTGRES_USER: user,
    SVC_POSTGRES_PASSWORD: password,
    SVC_POSTGRES_DB: name,
    ...(isPooled && { SVC_POSTGRES_POOLER: 'transaction' }),
    SVC_POSTGRES_ENGINE: isDistributed ? 'distributed' : 'postgresql',
    // On slow cores 100 concurrent creates take longer than the default of a second.
    ...(isCitus && { SVC_POSTGRES_POOL_TIMEOUT: '4' }),
  };
}

export type Surroundings = {
  readonly database: Omit<Database, 'drop' | 'query'>;
  readonly issuer: Awaited<ReturnType<typeof startIssuer>>;
};

/** Creates a database and starts an identity provider, or uses those of an existing service, which `stop` leaves alone. */
export async function startSurroundings(beside?: Surroundings, options: DatabaseOptions = {}) {
  if (beside) {
    const { database: existing, issuer } = beside;
    const query = (...statements: readonly string[]) => inDatabase(existing, ...statements);
    const database: Database = { ...existing, query, drop: async () => {} };
    return { database, issuer, environment: environmentOf(database, issuer), stop: async () => {} };
  }
  const [database, issuer] = await Promise.all([createDatabase(options), startIssuer()]);
  const stop = async () => void (await Promise.all([issuer.stop(), database.drop()]));
  return { database, issuer, environment: environmentOf(database, issuer), stop };
}

type ServiceOptions = DatabaseOptions & {
  readonly waitsUntilReady?: boolean;
  /** Changes the empty database before the service starts. */
  readonly prepare?: ((database: Database) => Promise<unknown>) | undefined;
};

/**
 * Starts the host with a database and an issuer of its own, or as another instance of an existing service. Its log
 * goes to a file that `events` reads.
 */
export async function startService(
  variables: Variables = {},
  beside?: Surroundings,
  { waitsUntilReady = true, prepare, ...options }: ServiceOptions = {},
) {
  const surroundings = await startSurroundings(beside, options);
  const { database, issuer } = surroundings;
  await prepare?.(database);
  const folder = mkdtempSync(join(tmpdir(), 'user-management-log-'));
  const file = join(folder, 'log');
  // It stays open: what is logged after the stop must not go to a socket that has its number by then.
  const descriptor = openSync(file, 'a');
  const environment = { ...surroundings.environment, ...variables };
  const host = await startHost(readSettings(environment), { logTo: descriptor });
  if (waitsUntilReady) await untilReady(host.url);

  return {
    host,
    url: host.url,
    issuer,
    database,
    environment,
    /** The events that were logged so far. */
    async events(): Promise<readonly Record<string, unknown>[]> {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const lines = readFileSync(file, 'utf8').split('\n');
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
    },
    call: callerOf(host.url, issuer),
    async stop() {
      await host.shutDown();
      await surroundings.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
