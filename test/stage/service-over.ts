import { onTestFinished } from 'vitest';
import type { Variables } from '../../lib/settings/settings.ts';
import type { DisposablePostgres } from './disposable-postgres.ts';
import { freshAddress, readResponse, USERS } from './responses.ts';
import { startService } from './service.ts';
import type { startIssuer } from './tokens.ts';
import { until } from './until.ts';

/** An address of PostgreSQL, of a proxy or of a pooler. */
export type Address = { readonly host: string; readonly port: number };

/** What the services of a file have in common. */
type Surroundings = {
  /** The server with the account and the database of the service. */
  readonly postgres: DisposablePostgres;
  readonly issuer: Awaited<ReturnType<typeof startIssuer>>;
};

/** Starts a service with these hosts of PostgreSQL, in this order. */
export async function startServiceOver(
  hosts: readonly Address[],
  { postgres, issuer }: Surroundings,
  variables: Variables = {},
) {
  const service = await startService(
    {
      SVC_POSTGRES_HOST: hosts.map(({ host }) => host).join(),
      SVC_POSTGRES_PORT: hosts.map(({ port }) => port).join(),
      ...variables,
    },
    { database: { ...postgres, drop: async () => [] }, issuer },
  );
  const call = async (...request: Parameters<typeof service.call>) =>
    readResponse(await service.call(...request));
  const create = () => call('POST', USERS, { email: freshAddress() });

  return {
    ...service,
    call,
    create,
    /** Waits until a user is stored. Resolves with the response. */
    untilWritten: (seconds = 10) =>
      until(
        'a user is stored',
        async () => {
          const response = await create();
          return response.status === 201 && response;
        },
        { seconds },
      ),
    /** Waits until a read has this status. */
    untilRead: (status: number, { path = USERS, seconds = 10 } = {}) =>
      until(`reads are ${status}`, async () => (await call('GET', path)).status === status, { seconds }),
  };
}

/** The same for one test, which stops it at its end. */
export async function serviceOver(...parameters: Parameters<typeof startServiceOver>) {
  const service = await startServiceOver(...parameters);
  onTestFinished(service.stop);
  return service;
}
