import { closeSync, openSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { startHost } from '../../host/host.ts';
import { migrations, runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { administer } from '../stage/administration.ts';
import { createDatabase } from '../stage/postgres.ts';
import { probe, readResponse, refusal } from '../stage/responses.ts';
import { environmentOf, startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

const USERS = '/api/v1/users/';

describe('SVC_POSTGRES_MIGRATE', () => {
  test('true lets one of many instances that start at once migrate, the others wait, and all become ready', async () => {
    const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
    const settings = readSettings(environmentOf(database, issuer));

    await Promise.all(Array.from({ length: 8 }, () => runMigrations(settings.postgres)));

    const admin = await administer(database.name);
    const ran = await admin.query(
      'SELECT name, count(*)::int FROM kysely_migration GROUP BY name ORDER BY name',
    );
    await admin.end();
    await issuer.stop();
    await database.drop();
    expect(ran).toEqual(Object.keys(migrations).map((name) => ({ name, count: 1 })));
  });

  test('false leaves the database unchanged, and /ready is 503 until it is migrated', async () => {
    const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
    const settings = readSettings({ ...environmentOf(database, issuer), SVC_POSTGRES_MIGRATE: 'false' });
    const log = openSync('/dev/null', 'w');
    const host = await startHost(settings, { logTo: log });
    const ready = async () => readResponse(await fetch(`${host.url}/ready`));
    const before = [await ready(), await ready()];
    await runMigrations(settings.postgres);
    const after = await ready();
    await host.shutDown();
    closeSync(log);
    await issuer.stop();
    await database.drop();

    expect(before).toEqual(before.map(() => refusal('service_unavailable_error', '/ready')));
    expect(after).toEqual(probe('ready'));
  });
});

describe('a request waits at most', () => {
  async function timed(asking: Promise<Response>) {
    const start = performance.now();
    const response = await readResponse(await asking);
    return { response, milliseconds: performance.now() - start };
  }

  test('SVC_POSTGRES_STATEMENT_TIMEOUT for a statement and SVC_POSTGRES_POOL_TIMEOUT for a connection', async () => {
    const service = await startService({
      SVC_POSTGRES_POOL_SIZE: '1',
      SVC_POSTGRES_POOL_TIMEOUT: '0.3',
      SVC_POSTGRES_STATEMENT_TIMEOUT: '1.5',
    });
    await service.call('GET', USERS);
    const admin = await administer(service.database.name);
    await admin.query('BEGIN');
    await admin.query('LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
    const [first, second] = await Promise.all([
      timed(service.call('GET', USERS)),
      timed(service.call('GET', USERS)),
    ]);
    await admin.query('ROLLBACK');
    await admin.end();
    await service.stop();

    expect([first.response, second.response]).toEqual([
      refusal('service_unavailable_error', USERS),
      refusal('service_unavailable_error', USERS),
    ]);
    const [quick, slow] = [first.milliseconds, second.milliseconds].toSorted((one, other) => one - other);
    expect(quick).toBeGreaterThan(250);
    expect(quick).toBeLessThan(1300);
    expect(slow).toBeGreaterThan(1400);
    expect(slow).toBeLessThan(3500);
  });
});
