import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, inject, test } from 'vitest';
import { migrations, runMigrations } from '../../lib/migrations/index.ts';
import type { Migration } from '../../lib/migrations/runner.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { administratorOf } from '../stage/administration.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { type LambdaFunction, startFunction } from '../stage/lambda-function.ts';
import { hold } from '../stage/locks.ts';
import { migrateLogged } from '../stage/logged-migrations.ts';
import { emptyDatabase, settingsFor } from '../stage/opened-database.ts';
import { startPgBouncer } from '../stage/pgbouncer.ts';
import { addressOf } from '../stage/proxy.ts';
import { TIMESTAMP } from '../stage/responses.ts';
import { times } from '../stage/until.ts';

const ROUNDS = 20;

const stage = forAllTests(() => startComposition());
const administrator = administratorOf(stage);
const pooler = forAllTests(() => startPgBouncer(inject('postgres'), { poolSize: 1 }));

const start = (operationId: string, variables: Variables = {}) =>
  forThisTest(startFunction, operationId, { ...stage.environment, ...addressOf(pooler), ...variables });

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
  expect(await administrator.countSessions()).toBe(1);
});

test('times are UTC with milliseconds and Z with any settings of the session from PgBouncer', async () => {
  await administrator.setForSessions('datestyle', 'German');
  await administrator.setForSessions('timezone', 'Asia/Kathmandu');
  const [create, get] = await Promise.all([start('createUser'), start('getUser')]);

  const { content: created } = await call(create, 'createUser', { body: '{"email":"german@example.com"}' });
  const { content: read } = await call(get, 'getUser', { id: created.id });

  expect(created.created_at).toMatch(TIMESTAMP);
  expect(Math.abs(Date.now() - Date.parse(created.created_at))).toBeLessThan(60_000);
  expect(read).toEqual(created);
});

test('concurrent migrations through PgBouncer all succeed, and leave nothing behind', async () => {
  const { database, admin } = await emptyDatabase();
  const shared = await forThisTest(startPgBouncer, inject('postgres'), { poolSize: 3 });
  const settings = settingsFor(database, { ...addressOf(shared), SVC_POSTGRES_POOLER: 'transaction' });

  await times(6, () => runMigrations(settings));

  const recorded = await admin.query('SELECT name FROM kysely_migration ORDER BY name');
  expect(recorded.map(({ name }) => name)).toEqual(Object.keys(migrations));
  expect(await admin.query('SELECT FROM pg_index WHERE NOT indisvalid')).toEqual([]);
  // The view has the locks of all databases, also of tests beside this one.
  const own = 'database = (SELECT oid FROM pg_database WHERE datname = current_database())';
  expect(await admin.query(`SELECT FROM pg_locks WHERE locktype = 'advisory' AND ${own}`)).toEqual([]);
});

test('a migration through PgBouncer that waits for a session logs for which', async () => {
  const { database } = await emptyDatabase();
  const shared = await forThisTest(startPgBouncer, inject('postgres'), { poolSize: 2 });
  const settings = settingsFor(database, { ...addressOf(shared), SVC_POSTGRES_POOLER: 'transaction' });
  await runMigrations(settings);
  const reader = await hold(database, "SET application_name = 'report'", 'SELECT FROM users');
  const note: Migration = async (send) => void (await send(sql`alter table users add note text`));
  const { waits, ended, untilLogged } = migrateLogged(settings, { ...migrations, '9001-note': note });
  await untilLogged();
  await reader.release();
  await ended;

  expect(waits).toMatchObject([{ migration: '9001-note', waits_for: [{ application_name: 'report' }] }]);
});

test('without the setting, PgBouncer refuses the options of a session', async () => {
  const get = await start('getUser', { SVC_POSTGRES_POOLER: 'none' });

  const { statusCode } = await call(get, 'getUser');

  expect(statusCode).toBe(503);
  expect(await pooler.log()).toContain('unsupported startup parameter');
});

test('the password can come from a file, which is read at every connection', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-password-'));
  const file = join(folder.path, 'password');
  writeFileSync(file, 'wrong');
  const callers = { svc: 'right' };
  const guarded = await forThisTest(startPgBouncer, inject('postgres'), { poolSize: 1, callers });
  const get = await start('getUser', {
    ...addressOf(guarded),
    SVC_POSTGRES_USER: 'svc',
    SVC_POSTGRES_PASSWORD_FROM: file,
  });

  const { statusCode } = await call(get, 'getUser');
  writeFileSync(file, 'right\n');
  const { statusCode: then } = await call(get, 'getUser');

  expect([statusCode, then]).toEqual([503, 404]);
});
