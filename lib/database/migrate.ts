import { Kysely, PostgresDialect } from 'kysely';
import { Migrator } from 'kysely/migration';
import type { Settings } from '../settings.ts';
import { clientConfig, openPool } from './connection.ts';
import { migrations } from './migrations/index.ts';

const CONNECT_TIMEOUT = 2;
const TEN_MINUTES = 600_000;

/**
 * Runs the pending migrations, all in one transaction. Of many instances one does it, under an advisory
 * lock, and the others wait; so the connection is one of its own, without the limit on statements.
 *
 * @throws whatever stopped it; then nothing has changed
 */
export async function migrate(settings: Settings['postgres']): Promise<void> {
  const pool = openPool({
    ...clientConfig(settings, CONNECT_TIMEOUT),
    query_timeout: TEN_MINUTES,
    max: 1,
  });
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
  try {
    const provider = { getMigrations: async () => ({ ...migrations }) };
    const { error } = await new Migrator({ db, provider }).migrateToLatest();
    if (error) throw error;
  } finally {
    await db.destroy();
  }
}
