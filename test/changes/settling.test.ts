import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Cleanup } from '../../lib/cleanup.ts';
import { Database } from '../../lib/postgres/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { CHANGES, type ChangeBody, endOfFeed, nextOf } from '../stage/changes.ts';
import { freshKey } from '../stage/keyed.ts';
import { BATCH, freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;

let writer: pg.Client;
let other: pg.Client;
let database: Database;

beforeAll(async () => {
  [writer, other] = [0, 1].map(() => new pg.Client({ ...service.database, ssl: false })) as [
    pg.Client,
    pg.Client,
  ];
  await Promise.all([writer.connect(), other.connect()]);
  database = new Database(readSettings(environmentOf(service.database, service.issuer)).postgres);
});

afterAll(async () => {
  await Promise.all([writer.end(), other.end(), database.close(1)]);
});

/** Writes changes of an actor as a transaction does before its end. */
const write = (client: pg.Client, actor: string, count = 1) =>
  client.query(
    `INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
     SELECT gen_random_uuid(), 1, 1, 0, '${actor}', '', now() FROM generate_series(1, ${count})`,
  );

const state = async () =>
  (await writer.query('SELECT settled::int, reached::int, late FROM user_changes_head')).rows[0];

const unnumbered = async () =>
  (await writer.query('SELECT count(*)::int FROM user_changes_unnumbered')).rows[0].count;

/** The actors of the changes after a cursor. */
const actorsAfter = async (link: string) =>
  ((await call('GET', `${link}&limit=1000`)).body as ChangeBody[]).map(({ data }) => data.actor);

/** Runs the cleanup this many times, as an instance does every ten minutes. */
async function maintain(times: number): Promise<void> {
  const cleanup = new Cleanup(database.statements, 30);
  for (let count = 0; count < times; count += 1) {
    await cleanup.run();
    await writer.query("UPDATE user_changes_head SET noted_at = noted_at - interval '10 minutes'");
  }
}

let end: string;

beforeEach(async () => {
  await maintain(4);
  end = await endOfFeed(call);
});

test('a change of a transaction that ends late is returned after its end, and counts as late until then', async () => {
  await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await write(writer, 'late');
  await write(other, 'punctual', 3);
  expect(await actorsAfter(end)).toEqual(['punctual', 'punctual', 'punctual']);
  await writer.query('COMMIT');
  const { settled, late } = await state();

  expect(late).toEqual([String(settled - 3)]);
  expect(await actorsAfter(end)).toEqual(['punctual', 'punctual', 'punctual', 'late']);
  expect(await state()).toEqual({ settled, reached: settled, late: [] });
});

test('a change after a gap of any size in the sequence is returned', async () => {
  await writer.query(
    "SELECT setval('user_changes_unnumbered_sequence_seq', nextval('user_changes_unnumbered_sequence_seq') + 1000000)",
  );
  await write(writer, 'far');
  await write(writer, 'farther');

  expect(await actorsAfter(end)).toEqual(['far', 'farther']);
  const { settled, reached, late } = await state();
  expect([settled < reached - 1_000_000, late]).toEqual([true, []]);
  await write(writer, 'next');
  expect(await actorsAfter(end)).toEqual(['far', 'farther', 'next']);
});

test('changes that an instance of an earlier version numbers in between are returned once', async () => {
  const numberAsBefore = `
    WITH candidate AS MATERIALIZED (
      SELECT sequence FROM user_changes_unnumbered ORDER BY sequence LIMIT 5000
    ), head AS MATERIALIZED (
      SELECT position FROM user_changes_head WHERE EXISTS (SELECT FROM candidate) FOR UPDATE
    ), taken AS (
      DELETE FROM user_changes_unnumbered AS unnumbered USING head
      WHERE unnumbered.sequence = ANY(ARRAY(SELECT sequence FROM candidate)) RETURNING unnumbered.*
    ), numbered AS (
      INSERT INTO user_changes (position, user_id, version, type, changed, actor, request_id, time)
      SELECT (SELECT position FROM head) + row_number() OVER (ORDER BY sequence),
        user_id, version, type, changed, actor, request_id, time FROM taken RETURNING position
    )
    UPDATE user_changes_head SET position = (SELECT max(position) FROM numbered) WHERE EXISTS (SELECT FROM numbered)`;
  for (const actor of ['a', 'b', 'c']) {
    await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await write(writer, `late ${actor}`);
    await write(other, actor);
    await other.query(numberAsBefore);
    await write(other, actor.toUpperCase());
    await actorsAfter(end);
    await writer.query('COMMIT');
    await (actor === 'b' ? other.query(numberAsBefore) : actorsAfter(end));
  }

  expect(await actorsAfter(end)).toEqual(['a', 'A', 'late a', 'b', 'B', 'late b', 'c', 'C', 'late c']);
});

describe('the cleanup', () => {
  test('settles the sequence after writes that were never committed, a quarter of an hour later', async () => {
    await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await write(writer, 'never', 10);
    await writer.query('ROLLBACK');
    await write(writer, 'after');
    expect(await actorsAfter(end)).toEqual(['after']);
    await maintain(2);
    const { late, reached } = await state();
    expect(late).toEqual(expect.arrayContaining([String(reached - 1), String(reached - 10)]));
    await maintain(3);

    expect(await state()).toEqual({ settled: reached, reached, late: [] });
    await write(writer, 'again');
    expect(await actorsAfter(end)).toEqual(['after', 'again']);
  });

  test('leaves no change without a position that was committed after the sequence was settled', async () => {
    await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await write(writer, 'very late');
    await write(other, 'punctual');
    expect(await actorsAfter(end)).toEqual(['punctual']);
    await maintain(3);
    await writer.query('COMMIT');
    await maintain(1);

    expect(await actorsAfter(end)).toEqual(['punctual', 'very late']);
  });

  test('notices that the sequence was set back before an instance of an earlier version wrote', async () => {
    await writer.query("SELECT setval('user_changes_unnumbered_sequence_seq', 1)");
    await write(writer, 'set back', 3);
    await maintain(1);
    await write(writer, 'after that');

    expect(await actorsAfter(end)).toEqual(['set back', 'set back', 'set back', 'after that']);
    expect(await unnumbered()).toBe(0);
  });
});

describe('after the sequence was set back', () => {
  const setBack = (by: number) =>
    writer.query(
      `SELECT setval(name, greatest(last_value - ${by}, 1), last_value > ${by})
       FROM user_changes_unnumbered_sequence_seq, LATERAL (SELECT 'user_changes_unnumbered_sequence_seq') AS sequence (name)`,
    );

  afterAll(() =>
    writer.query("SELECT setval('user_changes_unnumbered_sequence_seq', reached) FROM user_changes_head"),
  );

  const create = async (full_name = 'Ada') => {
    const { status, body } = await call('POST', USERS, { email: freshAddress(), full_name });
    expect(status).toBe(201);
    return body as UserBody;
  };

  /** The user's id and the version of each change after a cursor. */
  const changesAfter = async (link: string) =>
    ((await call('GET', `${link}&limit=1000`)).body as ChangeBody[]).map(({ subject, data }) => [
      subject,
      data.version,
    ]);

  test.each([
    [1, 1],
    [2, 1],
    [5, 4],
    [5, 5],
    [5, 6],
    [5, 12],
    [1_000_000, 3],
    [3000, 5],
  ])('by %i, a read has each of %i changes that were written since, in their order', async (by, count) => {
    const expected = [];
    for (let index = 0; index < 5; index += 1) expected.push([(await create()).id, 1]);
    expect(await changesAfter(end)).toEqual(expected);
    await setBack(by);
    for (let index = 0; index < count; index += 1) {
      expected.push([(await create()).id, 1]);
      if (index % 3 === 0) expect(await changesAfter(end)).toEqual(expected);
    }

    expect(await changesAfter(end)).toEqual(expected);
    await maintain(4);
    expected.push([(await create()).id, 1]);
    expect(await changesAfter(end)).toEqual(expected);
  });

  test('every kind of write is stored and read, although changes without a position have its numbers', async () => {
    const { id } = await create();
    const created = await Promise.all(Array.from({ length: 10 }, () => create()));
    for (const by of [11, 5, 1]) {
      await setBack(by);
      await call('PATCH', USERS + id, { full_name: `${by}` });
    }
    await setBack(3);
    const key = { headers: { 'idempotency-key': freshKey() } };
    const responses = [
      await call('POST', USERS, { email: freshAddress() }, key),
      await call('POST', BATCH, { items: Array.from({ length: 20 }, () => ({ email: freshAddress() })) }),
      await call('PATCH', USERS + id, { full_name: 'last' }),
      await call('DELETE', USERS + id),
    ];
    const changes = await changesAfter(end);

    expect(responses.map(({ status }) => status)).toEqual([201, 201, 200, 204]);
    expect(changes).toHaveLength(11 + 3 + 1 + 20 + 2);
    expect(changes.filter(([subject]) => subject === id)).toEqual(
      [1, 2, 3, 4, 5, 6].map((version) => [id, version]),
    );
    for (const user of created) expect(changes).toContainEqual([user.id, 1]);
    expect(await unnumbered()).toBe(0);
  });

  test('the changes of one user have those that were written since', async () => {
    const { id } = await create();
    await changesAfter(end);
    await setBack(5);
    await call('PATCH', USERS + id, { full_name: 'Grace' });
    await call('DELETE', USERS + id);

    expect((await call('GET', `${USERS}${id}/changes`)).body).toHaveLength(3);
  });
});

test('more late changes than the table of late changes has are all returned', async () => {
  await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await write(writer, 'late', 6000);
  await write(other, 'punctual');
  expect(await actorsAfter(end)).toEqual(['punctual']);
  const { late } = await state();
  expect(late).toEqual([]);
  await writer.query('COMMIT');

  let page = await call('GET', `${end}&limit=1000`);
  let count = 0;
  for (; (page.body as unknown[]).length > 0; page = await call('GET', nextOf(page)))
    count += (page.body as unknown[]).length;
  expect(count).toBe(6001);
  expect((await call('GET', `${CHANGES}?limit=1`)).status).toBe(200);
});
