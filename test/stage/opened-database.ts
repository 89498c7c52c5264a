import type pg from 'pg';
import { onTestFinished } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import { Database } from '../../lib/postgres/index.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { administer } from './administration.ts';
import { forAllTests, forThisTest } from './for-all-tests.ts';
import { createDatabase, type DatabaseOptions } from './postgres.ts';
import { connectToDatabase } from './rows.ts';
import { environmentOf } from './service.ts';

/** An identity provider for settings of which no token is verified. */
const ISSUER = { issuer: 'https://issuer.test', jwksUri: 'https://issuer.test/jwks', audience: 'users' };

export function settingsFor(database: Parameters<typeof environmentOf>[0], variables: Variables = {}) {
  return readSettings({ ...environmentOf(database, ISSUER), ...variables }).postgres;
}

/** An empty database for one test, and its settings. */
export async function emptyDatabase(options: DatabaseOptions = {}) {
  const database = await createDatabase(options);
  onTestFinished(async () => void (await database.drop()));
  const admin = await forThisTest(administer, database.name);
  return { database, admin, settings: settingsFor(database) };
}

/**
 * An empty database for all tests of a file, opened as the service opens it. `prepare` is a statement that the
 * administrator runs before the first test.
 */
export const openedDatabase = (prepare: string, variables: Variables = {}) =>
  forAllTests(async () => {
    const database = await createDatabase();
    const administrator = await administer(database.name);
    await administrator.query(prepare);
    const opened = new Database(settingsFor(database, variables));
    return {
      database,
      statements: opened.statements,
      /** Opens the database again, with these variables. */
      open: (others: Variables = {}) => new Database(settingsFor(database, others)),
      query: administrator.query,
      async stop() {
        await Promise.all([opened.close(1), administrator.stop()]);
        await database.drop();
      },
    };
  });

/** A database with the current tables for all tests of a file, and a connection to it. */
export const migratedDatabase = (prepare: (client: pg.Client) => Promise<unknown>) =>
  forAllTests(async () => {
    const database = await createDatabase();
    await runMigrations(settingsFor(database));
    const client = await connectToDatabase(database);
    await prepare(client);
    return {
      database,
      client,
      async stop() {
        await client.end();
        await database.drop();
      },
    };
  });
