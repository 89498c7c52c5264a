import { unavailable } from '../problem.ts';
import type { Settings } from '../settings.ts';
import { isMissingTable } from './faults.ts';
import { latestMigration } from './migrations/names.ts';
import type { Client } from './servers/client.ts';
import { abandon, clientConfig } from './servers/connection.ts';
import type { Servers } from './servers/servers.ts';

/** Whether the database is connected and has the tables that this version needs. */
export type Readiness = {
  /** @throws {Problem} service_unavailable_error, within a second */
  check(): Promise<void>;
  close(): Promise<void>;
};

const TIME_LIMIT = 950;

const NOT_MIGRATED = Symbol('not migrated');

const isMigrated = {
  text: 'select from kysely_migration where name = $1',
  values: [latestMigration],
};

/** Asks over a connection of its own, which no load on the pool can keep from it. One question at a time. */
export function createReadiness(settings: Settings['postgres'], servers: Servers): Readiness {
  let connected: Client | undefined;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    const client = connected ?? connection();
    const giveUp = setTimeout(() => abandon(client), TIME_LIMIT);
    try {
      if (client !== connected) await client.connect();
      connected = client;
      const { rowCount } = await client.query(isMigrated);
      if (rowCount === 0) throw NOT_MIGRATED;
    } catch (cause) {
      forget(client);
      abandon(client);
      throw notReady(cause);
    } finally {
      clearTimeout(giveUp);
    }
  }

  function connection(): Client {
    const client = new servers.Client(clientConfig(settings, 1));
    client.on('error', () => {
      forget(client);
      if (!asking) void client.end();
    });
    client.once('end', () => forget(client));
    return client;
  }

  function forget(client: Client): void {
    if (connected === client) connected = undefined;
  }

  return {
    check() {
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    async close() {
      if (connected) abandon(connected);
    },
  };
}

/** Before the first migration there is not even the table that tells. */
function notReady(cause: unknown) {
  if (isUnmigrated(cause)) return unavailable('the migrations have not run yet');
  return unavailable(`not ready: ${cause instanceof Error ? cause.message : cause}`, cause);
}

function isUnmigrated(cause: unknown): boolean {
  return cause === NOT_MIGRATED || isMissingTable(cause);
}
