import { onTestFinished } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import type { DisposablePostgres } from '../stage/disposable-postgres.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { settingsFor } from '../stage/opened-database.ts';
import { addressOf } from '../stage/proxy.ts';
import { freshAddress, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

/** An address of PostgreSQL, of a proxy or of a pooler. */
export type Address = { readonly host: string; readonly port: number };

/** Creates the tables of the service. */
export const migrateAlone = (postgres: DisposablePostgres) => runMigrations(settingsFor(postgres));

/** Until `undo`, new sessions at this host accept no writes. */
export async function takesNoWrites(postgres: DisposablePostgres) {
  const undo = await postgres.refuseWrites();
  onTestFinished(undo);
  await postgres.terminate();
  return undo;
}

/**
 * Starts a service for one test, with these hosts of PostgreSQL in this order. `postgres` has its account and its
 * database.
 */
export async function serviceOver(
  hosts: readonly Address[],
  postgres: DisposablePostgres,
  variables: Variables = {},
) {
  const issuer = await forThisTest(startIssuer);
  const all = { ...addressOf(...hosts), ...variables };
  const service = await forThisTest(startService, all, { database: postgres, issuer });
  const { call } = service;
  const create = () => call('POST', USERS, { email: freshAddress() });

  return {
    ...service,
    create,
    /** Waits until a user is stored. Resolves with the response. */
    async untilWritten(seconds = 10) {
      const isStored = async () => {
        const response = await create();
        return response.status === 201 && response;
      };
      return until('a user is stored', isStored, { seconds });
    },
    /** Waits until a read has this status. */
    untilRead: (status: number, { path = USERS, seconds = 10 } = {}) =>
      until(`reads are ${status}`, async () => (await call('GET', path)).status === status, { seconds }),
  };
}
