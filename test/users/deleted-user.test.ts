import { expect, test } from 'vitest';
import { CHANGES } from '../stage/changes.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { BATCH, freshAddress, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;
const post = postingUnderKeys(call);
const query = (statement: string) => service.database.query(statement);

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
    const texts = rows.map(({ row }) => String(row));
    copies.set(String(name), texts);
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
  const addresses = [freshAddress(), freshAddress(), freshAddress()] as const;
  const names = ['Ottilie Quellmalz', 'Tilly Quellmalz', 'Batista Quellmalz'] as const;
  const keys = [freshKey(), freshKey()] as const;
  const person = [...addresses, ...addresses.map((address) => address.replace(/@.*/, '')), ...names, ...keys];

  const created = await post(USERS, keys[0], { email: addresses[0], full_name: names[0] });
  const { id } = created.body as UserBody;
  await call('PATCH', USERS + id, { email: addresses[1], full_name: names[1] });
  const batch = await post(BATCH, keys[1], { items: [{ email: addresses[2], full_name: names[2] }] });
  const ids = [id, ...(batch.body as readonly UserBody[]).map((user) => user.id)];
  expect(ids).toHaveLength(2);
  expect(await tablesWith(person)).toEqual(['users']);

  for (const deleted of ids) expect(await call('DELETE', USERS + deleted)).toEqual(success(204, ''));
  await call('GET', CHANGES);

  expect(await tablesWith(person)).toEqual([]);
  expect((await tablesWith(ids)).toSorted()).toEqual(['idempotency_keys', 'user_changes']);
  const kept = await everyTable();
  expect(kept.get('users')).toEqual([]);
  const keptKeys = kept.get('idempotency_keys')?.map((row) => JSON.parse(row));
  const digests = { key: expect.stringMatching(SHA_256), request: expect.stringMatching(SHA_256) };
  expect(keptKeys).toHaveLength(2);
  for (const user of ids)
    expect(keptKeys).toContainEqual({ ...digests, user_ids: [user], created_at: expect.any(String) });
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
