import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { migrations } from '../../lib/migrations/index.ts';
import { type Migration, migrate } from '../../lib/migrations/runner.ts';
import { holdEmail } from '../stage/locks.ts';
import { emptyDatabase, type settingsFor } from '../stage/opened-database.ts';
import type { DatabaseOptions } from '../stage/postgres.ts';

const EMAIL_RULE = '0007-email-rule';
const before = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < EMAIL_RULE));

/** Runs the migrations of 1.2.0: the next version drops the index that instances of 1.1.0 use. */
const migrateTo120 = (settings: ReturnType<typeof settingsFor>) =>
  migrate(settings, Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0009')));

const TURKISH = { locale: "LOCALE_PROVIDER icu ICU_LOCALE 'tr' LC_COLLATE 'C' LC_CTYPE 'C'" };

/** A database with the tables of 1.1.0, and an index of external ids by a build between 1.1.0 and 1.2.0. */
async function earlierDatabase(options: DatabaseOptions = {}) {
  const made = await emptyDatabase(options);
  await migrate(made.settings, before);
  await useEarlierIndexes(made);
  return made;
}

async function useEarlierIndexes({ admin }: Earlier): Promise<void> {
  for (const statement of [
    // Citus drops one index in a statement.
    ...['key', 'key_ccnew', 'key_ccold', 'unicode_idx'].map(
      (name) => `DROP INDEX IF EXISTS users_email_${name}`,
    ),
    'DROP INDEX users_external_id_key',
    'CREATE UNIQUE INDEX users_email_key ON users (lower(upper(email)))',
    'CREATE UNIQUE INDEX users_external_id_key ON users (external_id) WHERE external_id IS NOT NULL',
  ])
    await admin.query(statement);
}

type Earlier = Awaited<ReturnType<typeof emptyDatabase>>;

const indexes = async ({ admin }: Earlier) =>
  (
    await admin.query(`
      SELECT concat_ws(' ', relname, CASE WHEN indisunique THEN 'unique' END, pg_get_expr(indexprs, indrelid),
        (SELECT collname FROM pg_collation WHERE oid = indcollation[0] AND collname = 'C'),
        CASE WHEN NOT indisvalid THEN 'invalid' END) AS index
      FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
      WHERE indrelid = 'users'::regclass AND relname ~ 'email|external' ORDER BY 1`)
  ).map(({ index }) => index);

const EMAIL_KEY = 'users_email_key unique lower((email COLLATE "C")) C';
const EXTERNAL_ID_KEY = 'users_external_id_key unique C';
const REPLACED = [EMAIL_KEY, 'users_email_unicode_idx lower(upper(email))', EXTERNAL_ID_KEY];

const insert = ({ admin }: Earlier, email: string) => {
  const id = randomUUID();
  return admin.query(`INSERT INTO users (id, email) VALUES ('${id}', '${email}')`).then(() => id);
};

test('the unique indexes are replaced, and the version before keeps an index for its lookups', async () => {
  const made = await earlierDatabase();
  await insert(made, 'é@example.com');
  await migrateTo120(made.settings);

  expect(await indexes(made)).toEqual(REPLACED);
  await insert(made, 'É@example.com');
  await expect(insert(made, 'é@EXAMPLE.com')).rejects.toThrow('users_email_key');
});

test('a write that begins before the migration is not refused, and counts', async () => {
  const made = await earlierDatabase();
  const writer = await holdEmail(made.database, 'held@example.com');
  const migrated = migrateTo120(made.settings);
  await insert(made, 'other@example.com');
  await writer.commit();
  await migrated;

  await expect(insert(made, 'HELD@example.com')).rejects.toThrow('users_email_key');
  expect(await indexes(made)).toEqual(REPLACED);
});

test('runs that are interrupted anywhere, and runs at once without a common lock, complete the migration', async () => {
  const made = await earlierDatabase();
  const rule = migrations[EMAIL_RULE];
  let statements = 0;
  for (let isComplete = false; !isComplete; statements += 1) {
    await useEarlierIndexes(made);
    let sent = 0;
    const interrupted: Migration = (send) =>
      rule(async (statement) => {
        sent += 1;
        if (sent > statements) throw new Error('interrupted');
        return send(statement);
      });
    isComplete = await migrate(made.settings, { [EMAIL_RULE]: interrupted }).then(
      () => true,
      () => false,
    );
    await migrateTo120(made.settings);
    expect(await indexes(made)).toEqual(REPLACED);
    await made.admin.query(`DELETE FROM kysely_migration WHERE name >= '${EMAIL_RULE}'`);
  }
  expect(statements).toBeGreaterThan(15);

  const again = await earlierDatabase();
  const unlocked = { ...again.settings, engine: 'distributed' } as const;
  await Promise.allSettled([1, 2, 3, 4].map(() => migrateTo120(unlocked)));
  await migrateTo120(again.settings);
  expect(await indexes(again)).toEqual(REPLACED);
});

test('users whose emails become the same end the migration with their number and ids, and nothing changes', async (context) => {
  context.skip(inject('postgresVersion') === 14);
  const made = await earlierDatabase(TURKISH);
  const ids = [await insert(made, 'info@x.example'), await insert(made, 'INFO@x.example')];
  const third = await insert(made, 'ınfo@y.example');
  const indexesBefore = await indexes(made);
  const fault: Error = await migrateTo120(made.settings).then(
    () => expect.unreachable(),
    (thrown) => thrown,
  );

  expect(fault.message).toMatch(/^2 users have emails /);
  for (const id of ids) expect(fault.message).toContain(id);
  expect(fault.message).not.toMatch(new RegExp(`@|${third}`));
  expect(await indexes(made)).toEqual(indexesBefore);
  await made.admin.query(`DELETE FROM users WHERE id = '${ids[0]}'`);
  await migrateTo120(made.settings);
  expect(await indexes(made)).toEqual(REPLACED);
});
