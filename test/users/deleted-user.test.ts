import { expect, test } from 'vitest';
import { CHANGES } from '../stage/changes.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { BATCH, freshAddress, success, USERS, type UserBody } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;
const post = postingUnderKeys(call);
const query = (statement: string) => inDatabase(service.database, statement);

/** Every row of every table outside of PostgreSQL's own schemas, as text, by the table's name. */
async function everyTable(): Promise<ReadonlyMap<string, readonly string[]>> {
  const tables = await query(`
    SELECT oid::regclass::text AS name FROM pg_class
    WHERE relkind IN ('r', 'p', 'm') AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      AND relnamespace::regnamespace::text NOT LIKE 'pg_toast%'
  `);
  const copies = new Map<string, readonly string[]>();
  for (const { name } of tables) {
    const rows = await query(`SELECT row_to_json(copied)::text AS row FROM ${name} AS copied`);
    copies.set(
      String(name),
      rows.map(({ row }) => String(row)),
    );
  }
  return copies;
}

/** The tables with a row that contains one of the texts: in any case, as text or as bytes. */
async function tablesWith(texts: readonly string[]): Promise<readonly string[]> {
  const sought = texts.flatMap((text) => [text.toLowerCase(), Buffer.from(text).toString('hex')]);
  const isFound = (row: string) => sought.some((text) => row.toLowerCase().includes(text));
  return [...(await everyTable())].filter(([, rows]) => rows.some(isFound)).map(([name]) => name);
}

test("after a delete only the user's id stays, in the changes and beside the digests of keys until these expire", async () => {
  const addresses = [freshAddress(), freshAddress(), freshAddress()];
  const [first = '', second = '', ofBatch = ''] = addresses;
  const names = ['Ottilie Quellmalz', 'Tilly Quellmalz', 'Batista Quellmalz'];
  const [firstName, secondName, nameOfBatch] = names;
  const keys = [freshKey(), freshKey()];
  const [key = '', keyOfBatch = ''] = keys;
  const person = [
    ...addresses,
    ...addresses.map((address) => address.split('@')[0] ?? ''),
    ...names,
    ...keys,
  ];

  const created = await post(USERS, key, { email: first, full_name: firstName });
  const { id } = created.body as UserBody;
  await call('PATCH', USERS + id, { email: second, full_name: secondName });
  const batch = await post(BATCH, keyOfBatch, { items: [{ email: ofBatch, full_name: nameOfBatch }] });
  const ids = [id, ...(batch.body as readonly UserBody[]).map((user) => user.id)];
  expect(ids).toHaveLength(2);
  expect(await tablesWith(person)).toEqual(['users']);

  for (const deleted of ids) expect(await call('DELETE', USERS + deleted)).toEqual(success(204, ''));
  await call('GET', CHANGES);

  expect(await tablesWith(person)).toEqual([]);
  expect((await tablesWith(ids)).toSorted()).toEqual(['idempotency_keys', 'user_changes']);
  const kept = await everyTable();
  expect(kept.get('users')).toEqual([]);
  expect(
    kept
      .get('idempotency_keys')
      ?.map((row) => JSON.parse(row))
      .toSorted(byUserIds),
  ).toEqual(
    ids.toSorted().map((user) => ({
      key: expect.stringMatching(SHA_256),
      request: expect.stringMatching(SHA_256),
      user_ids: [user],
      created_at: expect.any(String),
    })),
  );
  expect(kept.get('user_changes')?.map((row) => Object.keys(JSON.parse(row)))).toEqual(
    Array(5).fill([
      ...['position', 'user_id', 'version', 'type', 'changed', 'actor', 'request_id', 'time', 'identity'],
    ]),
  );

  await query(`
    UPDATE user_changes SET time = now() - interval '31 days';
    UPDATE idempotency_keys SET created_at = now() - interval '25 hours'
  `);
  await service.cleanUp();

  expect(await tablesWith([...person, ...ids])).toEqual([]);
});

/** The form in which PostgreSQL writes bytes. */
const SHA_256 = /^\\x[0-9a-f]{64}$/;

const byUserIds = (one: { user_ids: string[] }, other: { user_ids: string[] }) =>
  String(one.user_ids).localeCompare(String(other.user_ids));
