import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { migrations, runMigrations } from '../../lib/migrations/index.ts';
import { readSettings, type Variables } from '../../lib/settings/settings.ts';
import { administer } from '../stage/administration.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { type LambdaFunction, startFunction } from '../stage/lambda-function.ts';
import { startPgBouncer } from '../stage/pgbouncer.ts';
import { createDatabase } from '../stage/postgres.ts';
import { TIMESTAMP } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';

const ROUNDS = 20;

const stage = forAllTests(() => startComposition());
const pooler = forAllTests(() => startPgBouncer(inject('postgres'), { poolSize: 1 }));

async function start(operationId: string, variables: Variables = {}): Promise<LambdaFunction> {
  const behind = { ...stage.database, host: pooler.host, port: pooler.port };
  const instance = await startFunction(operationId, { ...environmentOf(behind, stage.issuer), ...variables });
  onTestFinished(instance.stop);
  return instance;
}

async function call(instance: LambdaFunction, name: string, particulars = {}) {
  const event = await eventOf(name, { token: await stage.issuer.sign(), ...particulars });
  const { statusCode, body } = await instance.call(event);
  return { statusCode, content: body && JSON.parse(body) };
}

test('functions share one session of PostgreSQL behind PgBouncer in transaction mode', async () => {
  const [create, get, update, remove, list, ready] = (await Promise.all(
    ['createUser', 'getUser', 'updateUser', 'deleteUser', 'listUsers', 'ready'].map((name) => start(name)),
  )) as [LambdaFunction, LambdaFunction, LambdaFunction, LambdaFunction, LambdaFunction, LambdaFunction];

  const lives = Array.from({ length: ROUNDS }, async (_, round) => {
    const created = await call(create, 'createUser', { body: `{"email":"life-${round}@example.com"}` });
    const { id } = created.content;
    const steps = [
      created,
      await call(get, 'getUser', { id }),
      await call(update, 'updateUser', { id }),
      await call(list, 'listUsers'),
      await call(ready, 'ready'),
      await call(remove, 'deleteUser', { id }),
      await call(get, 'getUser', { id }),
    ];
    return steps.map(({ statusCode }) => statusCode);
  });

  expect(await Promise.all(lives)).toEqual(lives.map(() => [201, 200, 200, 200, 200, 204, 404]));
  expect(await sessionsOfPooler()).toBe(1);
});

test('times are UTC with milliseconds and Z with any settings of the session from PgBouncer', async () => {
  const { name } = stage.database;
  const administrator = await administer();
  await administrator.query(`ALTER DATABASE ${name} SET datestyle = 'German'`);
  await administrator.query(`ALTER DATABASE ${name} SET timezone = 'Asia/Kathmandu'`);
  await administrator.terminate(name);
  await administrator.end();
  const [create, get] = await Promise.all([start('createUser'), start('getUser')]);

  const { content: created } = await call(create, 'createUser', { body: '{"email":"german@example.com"}' });
  const { content: read } = await call(get, 'getUser', { id: created.id });

  expect(created.created_at).toMatch(TIMESTAMP);
  expect(Math.abs(Date.now() - Date.parse(created.created_at))).toBeLessThan(60_000);
  expect(read).toEqual(created);
});

test('concurrent migrations through PgBouncer all succeed, and leave nothing behind', async () => {
  const database = await createDatabase();
  const shared = await startPgBouncer(inject('postgres'), { poolSize: 3 });
  const behind = { ...database, host: shared.host, port: shared.port };
  const settings = readSettings({
    ...environmentOf(behind, stage.issuer),
    SVC_POSTGRES_POOLER: 'transaction',
  });

  await Promise.all(Array.from({ length: 6 }, () => runMigrations(settings.postgres)));

  const administrator = await administer(database.name);
  const recorded = await administrator.query('SELECT name FROM kysely_migration ORDER BY name');
  const invalid = await administrator.query('SELECT FROM pg_index WHERE NOT indisvalid');
  const locks = await administrator.query("SELECT FROM pg_locks WHERE locktype = 'advisory'");
  await administrator.end();
  await shared.stop();
  await database.drop();
  expect(recorded.map(({ name }) => name)).toEqual(Object.keys(migrations));
  expect({ invalid, locks }).toEqual({ invalid: [], locks: [] });
});

test('without the setting, PgBouncer refuses the options of a session', async () => {
  const get = await start('getUser', { SVC_POSTGRES_POOLER: 'none' });

  const { statusCode } = await call(get, 'getUser');

  expect(statusCode).toBe(503);
  expect(await pooler.log()).toContain('unsupported startup parameter');
});

test('the password can come from a file, which is read at every connection', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-password-'));
  const file = join(folder, 'password');
  writeFileSync(file, 'wrong');
  const guarded = await startPgBouncer(inject('postgres'), { poolSize: 1, callers: { svc: 'right' } });
  const behind = { ...stage.database, host: guarded.host, port: guarded.port, user: 'svc' };
  const get = await startFunction('getUser', {
    ...environmentOf(behind, stage.issuer),
    SVC_POSTGRES_PASSWORD_FROM: file,
  });

  const { statusCode } = await call(get, 'getUser');
  writeFileSync(file, 'right\n');
  const { statusCode: then } = await call(get, 'getUser');
  await Promise.all([get.stop(), guarded.stop()]);
  rmSync(folder, { recursive: true });

  expect([statusCode, then]).toEqual([503, 404]);
});

/** All sessions in the database except for those of the stage, which are idle in their own pool. */
async function sessionsOfPooler(): Promise<number> {
  const administrator = await administer();
  const sessions = await administrator.countSessions(stage.database.name);
  await administrator.end();
  return sessions;
}
