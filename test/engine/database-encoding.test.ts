import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { migrations } from '../../lib/migrations/index.ts';
import type { SendSql } from '../../lib/postgres/index.ts';
import { compile } from '../../lib/postgres/prepared-statement.ts';
import { engineProfile } from '../../lib/postgres/sessions/engine-profile.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import type { createDatabase } from '../stage/postgres.ts';
import { freshAddress, readResponse, refusal, USERS } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { until } from '../stage/until.ts';

type Database = Awaited<ReturnType<typeof createDatabase>>;

/** A service with a database in this encoding, which `prepare` changes before the service starts. */
async function start(encoding: string, prepare?: (database: Database) => Promise<void>) {
  const variables = { SVC_POSTGRES_MIGRATE: String(!prepare) };
  const options = { encoding, prepare, waitsUntilReady: false };
  const service = await forThisTest(startService, variables, undefined, options);
  return {
    call: async (...request: Parameters<typeof service.call>) => readResponse(await service.call(...request)),
    logged: async () => JSON.stringify(await service.events()),
  };
}

/** The tables that an earlier version of the service created. */
async function migrate(database: Database): Promise<void> {
  const client = new pg.Client({ ...database, ssl: false });
  await client.connect();
  const send: SendSql = async (statement) => {
    const { sql, parameters } = compile(statement);
    return (await client.query(sql, [...parameters])).rows;
  };
  // Its commands work on Citus, too.
  const engine = engineProfile({ engine: 'distributed', pooler: 'none' });
  await client.query('CREATE TABLE kysely_migration (name text PRIMARY KEY, timestamp text)');
  for (const [name, migration] of Object.entries(migrations)) {
    await migration(send, engine);
    await client.query('INSERT INTO kysely_migration (name) VALUES ($1)', [name]);
  }
  await client.end();
}

describe.each(['SQL_ASCII', 'LATIN1', 'EUC_JP', 'WIN1252'])('a database with the encoding %s', (encoding) => {
  const reason = `the database has the encoding ${encoding}, and the service requires UTF8`;

  test('is not migrated, and the cause is logged at the first failure', async () => {
    const { call, logged } = await start(encoding);
    const failure = await until(
      'the migration has failed',
      async () => /\{[^{}]*"migration_failed".*?"message":"(.*?)"/.exec(await logged())?.[1],
    );

    expect(failure).toBe(reason);
    expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
  });

  test('that was migrated earlier is refused: /ready and user operations are 503, and the cause is logged', async () => {
    const { call, logged } = await start(encoding, migrate);
    const fields = { email: freshAddress(), full_name: 'é'.repeat(200) };

    expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
    expect(await logged()).toContain(`"message":"not ready: ${reason}"`);
    expect(await call('POST', USERS, fields)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
    expect(await logged()).toContain(`"message":"no connection: ${reason}"`);
    expect((await call('GET', '/health')).status).toBe(200);
  });
});
