import { execFile } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createIndexConcurrently } from '../../lib/migrations/concurrent-index.ts';
import { migrations, runMigrations } from '../../lib/migrations/index.ts';
import { type Migration, migrate } from '../../lib/migrations/runner.ts';
import { MigrationSession } from '../../lib/postgres/migration-session.ts';
import { engineProfile } from '../../lib/postgres/sessions/engine-profile.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { migrateLogged } from '../stage/logged-migrations.ts';
import { emptyDatabase, settingsFor } from '../stage/opened-database.ts';
import type { createDatabase } from '../stage/postgres.ts';
import { startProxy } from '../stage/proxy.ts';
import { environmentOf } from '../stage/service.ts';
import { until } from '../stage/until.ts';

/** A database with the current tables. */
async function migratedDatabase() {
  const made = await emptyDatabase();
  await runMigrations(made.settings);
  return made;
}

const recorded = ({ admin }: Awaited<ReturnType<typeof emptyDatabase>>) =>
  admin.query('SELECT name, count(*)::int FROM kysely_migration GROUP BY name ORDER BY name');

const structure = ({ admin }: Awaited<ReturnType<typeof emptyDatabase>>) =>
  admin.query(`
    SELECT indexdef AS definition FROM pg_indexes WHERE tablename = 'users'
    UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'users'::regclass
    UNION ALL SELECT concat_ws(' ', column_name, data_type, datetime_precision, is_nullable, column_default, collation_name)
      FROM information_schema.columns WHERE table_name = 'users' ORDER BY 1`);

const nameIndex: Migration = (send) =>
  createIndexConcurrently(send, { name: 'users_full_name_idx', table: 'users', on: sql`(full_name)` });

/** `concurrently` is for tables with rows. */
const addUser = ({ admin }: Awaited<ReturnType<typeof emptyDatabase>>) =>
  admin.query("INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'ada@example.com')");

const ofFirstVersion = { '0001-users': migrations['0001-users'] };

const withNameIndex = { ...ofFirstVersion, '9001-name-index': nameIndex };

test('the migrations are in the order of their names', () => {
  const names = Object.keys(migrations);

  expect(names).toEqual(names.toSorted());
});

test('of many instances that start at once one migrates, and the others wait for it', async () => {
  const made = await emptyDatabase();
  await migrate(made.settings, ofFirstVersion);
  await addUser(made);
  let runs = 0;
  const slow: Migration = async (send) => {
    runs += 1;
    await send(sql`select pg_sleep(0.5)`);
    await nameIndex(send, engineProfile(made.settings));
  };
  const known = { ...migrations, '9001-slow': slow };
  await Promise.all(Array.from({ length: 8 }, () => migrate(made.settings, known)));

  expect(runs).toBe(1);
  expect(await recorded(made)).toEqual(Object.keys(known).map((name) => ({ name, count: 1 })));
});

test('every migration can run again, after any part of it', async () => {
  const made = await migratedDatabase();
  const before = await structure(made);
  await made.admin.query('DELETE FROM kysely_migration');
  await made.admin.query('DROP INDEX users_created_at_id_idx');
  await runMigrations(made.settings);

  expect(await structure(made)).toEqual(before);
});

test('a schema with later migrations is not changed, also by a role without rights to change it', async () => {
  const made = await migratedDatabase();
  const role = `reader_${made.database.name}`;
  await made.admin.query("INSERT INTO kysely_migration VALUES ('9999-later', '2030-01-01T00:00:00.000Z')");
  await made.admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  onTestFinished(async () => {
    await made.admin.query(`DROP OWNED BY ${role}`);
    await made.admin.query(`DROP ROLE ${role}`);
  });
  await made.admin.query(`GRANT SELECT ON kysely_migration TO ${role}`);
  await runMigrations({ ...made.settings, user: role, password: 'secret' });

  expect((await recorded(made)).map(({ name }) => name)).toEqual([...Object.keys(migrations), '9999-later']);
});

test('the sequence that PostgreSQL has given another name gets its name', async () => {
  const made = await migratedDatabase();
  await made.admin.query('ALTER SEQUENCE user_changes_unnumbered_sequence_seq RENAME TO "Other"');
  await made.admin.query("DELETE FROM kysely_migration WHERE name >= '0008'");
  await runMigrations(made.settings);

  const named = "SELECT pg_get_serial_sequence('user_changes_unnumbered', 'sequence') AS name";
  expect(await made.admin.query(named)).toEqual([{ name: 'public.user_changes_unnumbered_sequence_seq' }]);
});

test('an index that a failed attempt left is built again', async () => {
  const made = await migratedDatabase();
  await made.admin.query(`INSERT INTO users (id, email, full_name)
    VALUES (gen_random_uuid(), 'a@b', 'Ada'), (gen_random_uuid(), 'c@d', 'Ada')`);
  const broken = made.admin.query(
    'CREATE UNIQUE INDEX CONCURRENTLY users_full_name_idx ON users (full_name)',
  );
  await expect(broken).rejects.toThrow('could not create unique index');
  const validity = () =>
    made.admin.query(
      "SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = 'users_full_name_idx'::regclass",
    );
  const left = await validity();
  await migrate(made.settings, withNameIndex);

  expect(left).toEqual([{ indisvalid: false, indisunique: true }]);
  expect(await validity()).toEqual([{ indisvalid: true, indisunique: false }]);
});

test('no write waits behind a schema change that waits itself', async () => {
  const made = await migratedDatabase();
  const reader = await hold(made.database, 'SELECT FROM users');
  const addColumn: Migration = async (send) => {
    await send(sql`alter table users add column if not exists note text`);
  };
  const running = migrate(made.settings, { ...migrations, '9001-note': addColumn });
  await untilUnderWay(1, made.database);
  // Without a limit it would wait until the reader ends.
  await addUser(made);
  await reader.release();
  await running;

  expect(await made.admin.query('SELECT email, note FROM users')).toEqual([
    { email: 'ada@example.com', note: null },
  ]);
});

test('a migration fails if the network forgets its connection, and the next one succeeds', async () => {
  const { database, admin, settings } = await emptyDatabase();
  const proxy = await forThisTest(startProxy, database);
  // Not committed, so that the first statement is in progress when the network forgets the connection.
  const other = await hold(database, 'CREATE TABLE kysely_migration (name text)');
  const through = { ...settings, servers: [{ host: proxy.host, port: proxy.port }] as const };
  const running = runMigrations(through);
  await untilUnderWay(1, database);
  proxy.forget();
  await Promise.all([expect(running).rejects.toThrow('Connection terminated'), other.release()]);
  // The next migration waits a few seconds at most for the session that PostgreSQL still considers alive.
  await runMigrations(through);

  expect(await admin.query('SELECT name FROM kysely_migration ORDER BY name')).toEqual(
    Object.keys(migrations).map((name) => ({ name })),
  );
});

/** A session that keeps a snapshot until its end. */
const startDump = (database: Awaited<ReturnType<typeof createDatabase>>) =>
  hold(
    database,
    "SET application_name = 'pg_dump'",
    'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ',
    'SELECT 1 FROM pg_class',
  );

test('the migrations of an empty database do not wait for an old transaction', async () => {
  const { database, settings } = await emptyDatabase();
  await forThisTest(startDump, database);

  await runMigrations(settings);
});

test('a migration that waits for an old transaction logs for which session it waits', async () => {
  const made = await emptyDatabase();
  const { database, settings } = made;
  await migrate(settings, ofFirstVersion);
  await addUser(made);
  const dump = await startDump(database);
  const { waits, ended, untilLogged } = migrateLogged(settings, migrations);
  await untilLogged();
  await dump.release();
  await ended;

  expect(waits).toMatchObject([
    {
      migration: '0002-inactive-users',
      waits_for: [
        { pid: expect.any(Number), application_name: 'pg_dump', transaction_age_ms: expect.any(Number) },
      ],
    },
  ]);
});

describe('with a PostgreSQL of its own', () => {
  const server = forAllTests(() =>
    startDisposablePostgres({
      settings: { max_prepared_transactions: 2, autovacuum_naptime: 1, autovacuum_vacuum_cost_limit: 1 },
    }),
  );

  const addColumn: Migration = async (send) => {
    await send(sql`alter table users add column if not exists note text`);
  };

  /** A database whose autovacuum of `users` takes minutes. `how` makes it begin. */
  async function beginAutovacuum(name: string, how: string) {
    const settings = settingsFor({ ...server, name, database: name });
    await server.query(`CREATE DATABASE ${name}`);
    await migrate(settings, ofFirstVersion);
    await server.query(
      [
        "INSERT INTO users (id, email) SELECT gen_random_uuid(), repeat('a', 200) || n FROM generate_series(1, 20000) AS n",
        'UPDATE users SET version = 2',
        `ALTER TABLE users SET (autovacuum_vacuum_cost_delay = 100, ${how})`,
        'DO $$ BEGIN FOR n IN 1 .. 100100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$',
      ],
      name,
    );
    const isHeld = `SELECT FROM pg_locks WHERE relation = 'users'::regclass AND mode = 'ShareUpdateExclusiveLock'
      AND pid IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'autovacuum worker')`;
    const isUnderWay = async () => (await server.query(isHeld, name)).length > 0;
    await until('the autovacuum is under way', isUnderWay, { seconds: 20 });
    return { settings, query: (statement: string) => server.query(statement, name) };
  }

  test('an autovacuum ends for a migration within seconds, and delays no read and no write', async () => {
    const { settings, query } = await beginAutovacuum('usual', 'autovacuum_vacuum_threshold = 1');
    const begun = performance.now();
    const durations: number[] = [];
    const { waits, ended } = migrateLogged(settings, { ...ofFirstVersion, '9001-note': addColumn });
    const isMigrated = ended.then(() => true);
    do {
      const sent = performance.now();
      await query("UPDATE users SET version = 3 WHERE email = 'none'; SELECT FROM users LIMIT 1");
      durations.push(performance.now() - sent);
    } while (!(await Promise.race([isMigrated, sleep(10, false)])));

    // PostgreSQL ends it after a second.
    expect(performance.now() - begun).toBeLessThan(4500);
    expect(Math.max(...durations)).toBeLessThan(900);
    expect(waits).toEqual([]);
  });

  test('a migration waits for an autovacuum that prevents wraparound, and logs so', async () => {
    const { settings, query } = await beginAutovacuum(
      'wraparound',
      'autovacuum_freeze_max_age = 100000, autovacuum_vacuum_threshold = 1000000, autovacuum_analyze_threshold = 1000000, autovacuum_vacuum_insert_threshold = -1',
    );
    const { waits, ended, untilLogged } = migrateLogged(settings, {
      ...ofFirstVersion,
      '9001-note': addColumn,
    });
    await untilLogged();
    const end =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'";
    const isMigrated = ended.then(() => true);
    while (!(await Promise.race([isMigrated, sleep(100, false)]))) await query(end);

    const autovacuum = { pid: expect.any(Number), application_name: 'autovacuum worker' };
    expect(waits).toMatchObject([{ migration: '9001-note', waits_for: [autovacuum] }]);
  });

  test('a question about a migration that PostgreSQL does not answer ends within seconds', async () => {
    const session = await MigrationSession.open(settingsFor(server));
    onTestFinished(() => session.end());

    await expect(session.askAside('SELECT pg_sleep(60), $1::int, $2::text')).rejects.toThrow();
  });

  test('the command waits for a reader and a prepared transaction, and says so on standard error', async () => {
    const { database, settings } = { database: server, settings: settingsFor(server) };
    await migrate(settings, ofFirstVersion);
    await server.query(['BEGIN', 'SELECT FROM users', "PREPARE TRANSACTION 'forgotten'"]);
    const reader = await hold(database, "SET application_name = 'report'", 'SELECT FROM users');
    const issuer = 'https://a.test';
    const variables = environmentOf(server, { issuer, jwksUri: issuer, audience: 'a' });
    const command = execFile(process.execPath, ['host/commands/migrate.ts'], {
      env: { ...variables, SVC_ENV: 'production' },
    });
    const [output, errors] = [command.stdout, command.stderr].map((stream) => text(stream as Readable));
    const ended = once(command, 'exit');
    // After five seconds of waiting, and before it is repeated.
    await once(command.stderr as Readable, 'data');
    await server.query("ROLLBACK PREPARED 'forgotten'");
    await reader.release();

    expect(await ended).toEqual([0, null]);
    expect(await output).toBe('The database is migrated.\n');
    expect(JSON.parse((await errors) ?? '')).toMatchObject({
      event: 'migration_waiting',
      migration: '0004-user-changes',
      waits_for: expect.arrayContaining([
        { prepared_transaction: 'forgotten' },
        { pid: expect.any(Number), application_name: 'report', transaction_age_ms: expect.any(Number) },
      ]),
    });
  });
});
