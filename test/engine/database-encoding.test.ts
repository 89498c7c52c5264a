import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { startHost } from '../../host/host.ts';
import { migrations } from '../../lib/migrations/index.ts';
import { engineProfile } from '../../lib/postgres/engine-profile.ts';
import type { SendSql } from '../../lib/postgres/index.ts';
import { compile } from '../../lib/postgres/prepared-statement.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { createDatabase } from '../stage/postgres.ts';
import { freshAddress, readResponse, refusal } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

const USERS = '/api/v1/users/';

type Database = Awaited<ReturnType<typeof createDatabase>>;

/** A host with a database in this encoding, which `prepare` changes before the host starts. */
async function withHost(
  encoding: string,
  { isToMigrate, prepare }: { isToMigrate: boolean; prepare?: (database: Database) => Promise<void> },
  use: (host: Awaited<ReturnType<typeof hostOver>>) => Promise<void>,
): Promise<void> {
  const [database, issuer] = await Promise.all([createDatabase({ encoding }), startIssuer()]);
  await prepare?.(database);
  const host = await hostOver(database, issuer, isToMigrate);
  await use(host).finally(async () => {
    await host.stop();
    await issuer.stop();
    await database.drop();
  });
}

async function hostOver(
  database: Database,
  issuer: Awaited<ReturnType<typeof startIssuer>>,
  isToMigrate: boolean,
) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-log-'));
  const descriptor = openSync(join(folder, 'log'), 'a');
  const environment = { ...environmentOf(database, issuer), SVC_POSTGRES_MIGRATE: String(isToMigrate) };
  const { url, shutDown } = await startHost(readSettings(environment), { logTo: descriptor });
  const headers = { authorization: `Bearer ${await issuer.sign()}`, 'content-type': 'application/json' };

  return {
    call: async (method: string, path: string, body?: unknown) =>
      readResponse(
        await fetch(url + path, {
          method,
          headers,
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      ),
    logged: () => readFileSync(join(folder, 'log'), 'utf8'),
    async stop() {
      await shutDown();
      closeSync(descriptor);
      rmSync(folder, { recursive: true });
    },
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
  const engine = engineProfile({ engine: 'postgresql', pooler: 'none' });
  await client.query('CREATE TABLE kysely_migration (name text PRIMARY KEY, timestamp text)');
  for (const [name, migration] of Object.entries(migrations)) {
    await migration(send, engine);
    await client.query('INSERT INTO kysely_migration (name) VALUES ($1)', [name]);
  }
  await client.end();
}

describe.each(['SQL_ASCII', 'LATIN1', 'EUC_JP', 'WIN1252'])('a database with the encoding %s', (encoding) => {
  const reason = `the database has the encoding ${encoding}, and the service requires UTF8`;

  test('is not migrated, and the cause is logged at the first failure', () =>
    withHost(encoding, { isToMigrate: true }, async ({ call, logged }) => {
      const failures = () => logged().match(/.*"migration_failed".*/g) ?? [];
      await until('the migration has failed', () => failures().length > 0);

      expect(failures()[0]).toContain(`"message":"${reason}"`);
      expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
    }));

  test('that was migrated earlier is refused: /ready and user operations are 503, and the cause is logged', () =>
    withHost(encoding, { isToMigrate: false, prepare: migrate }, async ({ call, logged }) => {
      const fields = { email: freshAddress(), full_name: 'é'.repeat(200) };

      expect(await call('GET', '/ready')).toEqual(refusal('service_unavailable_error', '/ready'));
      expect(logged()).toContain(`"message":"not ready: ${reason}"`);
      expect(await call('POST', USERS, fields)).toEqual(refusal('service_unavailable_error', USERS));
      expect(await call('GET', USERS)).toEqual(refusal('service_unavailable_error', USERS));
      expect(logged()).toContain(`"message":"no connection: ${reason}"`);
      expect((await call('GET', '/health')).status).toBe(200);
    }));
});
