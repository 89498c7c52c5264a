import { randomUUID } from 'node:crypto';
import type { Variables } from '../../lib/settings/environment.ts';
import { type HostOptions, startBuiltHost } from './built-host.ts';
import { callerOf, senderTo, untilReady } from './caller.ts';
import { type Surroundings, startSurroundings } from './service.ts';
import { until } from './until.ts';

/** A running built host, with a database and an issuer of its own. */
export type BuiltService = Awaited<ReturnType<typeof startBuiltService>>;

/**
 * Starts the built host with a database and an issuer of its own, or as another instance of an existing service. Waits
 * until it is ready and has fetched the keys. Otherwise the fetch would be in the trace of a first request.
 */
export async function startBuiltService(
  variables: Variables = {},
  { beside, ...options }: HostOptions & { readonly beside?: Surroundings } = {},
) {
  const surroundings = await startSurroundings(beside);
  const { database, issuer } = surroundings;
  const environment = { ...surroundings.environment, ...variables };
  const host = await startBuiltHost(environment, options);
  const { SVC_PORT: port } = variables;
  const url = Number(port) > 0 ? `http://127.0.0.1:${port}` : await host.untilListening();
  await untilReady(url);
  if (!beside && environment.SVC_OAUTH_JWKS_URI === issuer.jwksUri)
    await until('the keys are fetched', () => issuer.fetches > 0, { every: 5 });
  const call = callerOf(url, issuer);

  return {
    ...host,
    url,
    database,
    issuer,
    environment,
    call,
    /** Sends the same requests, and resolves with responses as fetch has them. */
    send: senderTo(url, issuer),
    /** Creates a user, and resolves with its id. */
    async createUser(email = `${randomUUID()}@example.com`): Promise<string> {
      const { body } = await call('POST', '/api/v1/users/', { email });
      return (body as { id: string }).id;
    },
    async remove() {
      await host.remove();
      await surroundings.stop();
    },
  };
}
