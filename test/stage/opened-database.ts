import pg from 'pg';
import { beforeAll, onTestFinished } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import { Database } from '../../lib/postgres/index.ts';
import { readSettings, type Variables } from '../../lib/settings/settings.ts';
import { administer } from './administration.ts';
import { createDatabase, type DatabaseOptions } from './postgres.ts';
import { environmentOf } from './service.ts';

/** An identity provider for settings of which no token is verified. */
const ISSUER = { issuer: 'https://issuer.test', jwksUri: 'https://issuer.test/jwks', audience: 'users' };

/** The settings of a service for a database and these variables. */
export function settingsFor(database: Awaited<ReturnType<typeof createDatabase>>, variables: Variables = {}) {
  return readSettings({ ...environmentOf(database, ISSUER), ...variables }).postgres;
}

/** An empty database for one test, and its settings. */
export async function emptyDatabase(options: DatabaseOptions = {}) {
  const database = await createDatabase(options);
  onTestFinished(async () => void (await database.drop()));
  const admin = await administer(database.name);
  onTestFinished(admin.end);
  return { database, admin, settings: settingsFor(database) };
}

/**
 * An empty database for all tests of a file, opened as the service opens it. `prepare` is a statement that the
 * administrator runs before the first test.
 */
export function openedDatabase(prepare: string, variables: Variables = {}) {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let administrator: Awaited<ReturnType<typeof administer>>;
  let opened: Database;
  beforeAll(async () => {
    database = await createDatabase();
    administrator = await administer(database.name);
    await administrator.query(prepare);
    opened = new Database(settingsFor(database, variables));
    return async () => {
      await Promise.all([opened.close(1), administrator.end()]);
      await database.drop();
    };
  });

  return {
    get database() {
      return database;
    },
    get statements() {
      return opened.statements;
    },
    /** Opens the database again, with these variables. */
    open: (others: Variables = {}) => new Database(settingsFor(database, others)),
    /** Runs a statement as administrator. */
    query: (statement: string) => administrator.query(statement),
  };
}

/** A database with the current tables for all tests of a file, and a connection to it. */
export function migratedDatabase(prepare: (client: pg.Client) => Promise<unknown>) {
  const migrated = {} as { database: Awaited<ReturnType<typeof createDatabase>>; client: pg.Client };
  beforeAll(async () => {
    const database = await createDatabase();
    await runMigrations(settingsFor(database));
    const client = new pg.Client({ ...database, ssl: false });
    await client.connect();
    await prepare(client);
    Object.assign(migrated, { database, client });
    return async () => {
      await client.end();
      await database.drop();
    };
  }, 60_000);
  return migrated;
}
