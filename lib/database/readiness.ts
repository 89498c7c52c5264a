import { Client } from 'pg';
import { unavailable } from '../problem.ts';
import type { Settings } from '../settings.ts';
import { clientConfig } from './client-config.ts';
import { latestMigration } from './migrations/latest.ts';

/** Whether the database is connected and has the tables that this version needs. */
export type Readiness = {
  /** @throws {Problem} service_unavailable_error, within a second */
  check(): Promise<void>;
  close(): Promise<void>;
};

const TIME_LIMIT = 950;

const isMigrated = {
  text: 'select from kysely_migration where name = $1',
  values: [latestMigration],
};

/** Asks over a connection of its own, which no load on the pool can keep from it. One question at a time. */
export function createReadiness(settings: Settings['postgres']): Readiness {
  let connected: Client | undefined;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    const client = connected ?? connectionOf(settings);
    const giveUp = setTimeout(() => abandon(client), TIME_LIMIT);
    try {
      if (client !== connected) await client.connect();
      connected = client;
      client.once('end', () => forget(client));
      const { rowCount } = await client.query(isMigrated);
      if (rowCount === 0) throw new Error('the migrations have not run yet');
    } catch (cause) {
      forget(client);
      abandon(client);
      throw unavailable(`not ready: ${cause instanceof Error ? cause.message : cause}`, cause);
    } finally {
      clearTimeout(giveUp);
    }
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

function connectionOf(settings: Settings['postgres']): Client {
  const client = new Client(clientConfig(settings, 1));
  client.on('error', () => {});
  return client;
}

function abandon(client: Client): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
