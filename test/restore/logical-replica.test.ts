import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { CHANGES, type ChangeBody, nextOf } from '../stage/changes.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { startService, startSurroundings } from '../stage/service.ts';
import { until } from '../stage/until.ts';

const TABLES =
  'users, idempotency_keys, user_changes, user_changes_unnumbered, user_changes_head, kysely_migration';

test('a logical replica takes over, and the changes have every write of both databases, once and in order', async () => {
  const { database, issuer } = await forThisTest(startSurroundings);
  const { database: replica } = await emptyDatabase();
  const first = await startService({}, { database, issuer });
  const { host, port, user, name } = database;
  const from = `--dbname=postgres://${user}@${host}:${port}/${name}`;
  const dump = join(inject('postgresPrograms'), 'pg_dump');
  const schema = execFileSync(dump, ['--schema-only', '--no-owner', from]);
  await inDatabase(replica, schema.toString().replaceAll(/^\\.*$/gm, ''));
  await database.query(
    `CREATE PUBLICATION users FOR TABLE ${TABLES}`,
    `SELECT pg_create_logical_replication_slot('${name}', 'pgoutput')`,
  );
  await inDatabase(
    replica,
    `CREATE SUBSCRIPTION users CONNECTION 'host=${host} port=${port} user=${user} dbname=${name}'
     PUBLICATION users WITH (create_slot = false, slot_name = '${name}')`,
  );

  const written: (readonly [string, number])[] = [];
  let { call } = first;
  const create = async () => {
    const response = await call('POST', USERS, { email: freshAddress() });
    expect(response.status).toBe(201);
    const { id } = response.body as UserBody;
    written.push([id, 1]);
    return id;
  };
  const readFrom = async (link: string) => {
    const page = await call('GET', link);
    const changes = (page.body as ChangeBody[]).map(({ subject, data }) => [subject, data.version]);
    return { changes, next: nextOf(page) };
  };
  for (let count = 0; count < 20; count += 1) await create();
  const before = await readFrom(`${CHANGES}?limit=1000`);
  // These have no position yet.
  const ids = [await create(), await create(), await create()];
  await first.stop();
  const [end] = await inDatabase(database, 'SELECT pg_current_wal_flush_lsn() AS lsn');
  await until('all tables are copied, and the replica has everything', async () => {
    const copying = await inDatabase(replica, "SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r'");
    const reached = `SELECT FROM pg_replication_slots WHERE slot_name = '${name}' AND confirmed_flush_lsn >= '${end?.lsn}'`;
    return copying.length === 0 && (await inDatabase(database, reached)).length === 1;
  });
  expect(await inDatabase(replica, 'SELECT FROM user_changes_unnumbered')).toHaveLength(ids.length);
  const alter = 'ALTER SUBSCRIPTION users';
  await inDatabase(replica, `${alter} DISABLE`, `${alter} SET (slot_name = NONE)`, 'DROP SUBSCRIPTION users');
  await database.query(`SELECT pg_drop_replication_slot('${name}')`);

  const second = await startService({}, { database: replica, issuer });
  call = second.call;
  for (let count = 0; count < 30; count += 1) {
    await create();
    const [id] = ids;
    expect((await call('PATCH', USERS + id, { full_name: `${count}` })).status).toBe(200);
    written.push([id as string, count + 2]);
    if (count % 7 === 0) expect((await readFrom(`${CHANGES}?limit=1000`)).changes).toEqual(written);
  }
  const all = await readFrom(`${CHANGES}?limit=1000`);
  const since = await readFrom(before.next);
  await second.stop();

  expect(all.changes).toEqual(written);
  expect(since.changes).toEqual(written.slice(20));
});
