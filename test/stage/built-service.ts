import { randomUUID } from 'node:crypto';
import type { Variables } from '../../lib/settings/settings.ts';
import { type HostOptions, startBuiltHost } from './built-host.ts';
import { callerOf, untilReady } from './caller.ts';
import { createDatabase } from './postgres.ts';
import { environmentOf } from './service.ts';
import { startIssuer } from './tokens.ts';
import { until } from './until.ts';

export { callerOf, untilReady } from './caller.ts';

/** A running built host, with a database and an issuer of its own. */
export type BuiltService = Awaited<ReturnType<typeof startBuiltService>>;

/**
 * Starts the built host with a database and an issuer of its own, and waits until it is ready and has fetched the keys.
 * Otherwise the fetch would be in the trace of a first request.
 */
export async function startBuiltService(variables: Variables = {}, options: HostOptions = {}) {
  const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  const environment = { ...environmentOf(database, issuer), ...variables };
  const host = await startBuiltHost(environment, options);
  const { SVC_PORT: port } = variables;
  const url = Number(port) > 0 ? `http://127.0.0.1:${port}` : await host.untilListening();
  await untilReady(url);
  if (environment.SVC_OAUTH_JWKS_URI === issuer.jwksUri)
    await until('the keys are fetched', () => issuer.fetches > 0, { every: 5 });
  const call = callerOf(url, issuer);

  return {
    ...host,
    url,
    database,
    issuer,
    environment,
    call,
    /** Creates a user, and resolves with its id. */
    async createUser(email = `${randomUUID()}@example.com`): Promise<string> {
      const response = await call('POST', '/api/v1/users/', { email });
      return ((await response.json()) as { id: string }).id;
    },
    async remove() {
      await host.remove();
      await Promise.all([issuer.stop(), database.drop()]);
    },
  };
}
