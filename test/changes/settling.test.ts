import { beforeEach, describe, expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { CHANGES, type ChangeBody, endOfFeed, readOn } from '../stage/changes.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call } = service;
const writer = administratorOf(service);
const other = administratorOf(service);

/** Writes changes of an actor as a transaction does before its end. */
const write = (client: typeof writer, actor: string, count = 1) =>
  client.query(
    `INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
     SELECT gen_random_uuid(), 1, 1, 0, '${actor}', '', now() FROM generate_series(1, ${count})`,
  );

const state = async () => {
  const [row] = await writer.query('SELECT settled::int, reached::int, late FROM user_changes_head');
  return row as { settled: number; reached: number; late: readonly string[] };
};

/** The actors of the changes after a cursor. */
const actorsAfter = async (link: string) =>
  ((await call('GET', `${link}&limit=1000`)).body as ChangeBody[]).map(({ data }) => data.actor);

/** Runs the cleanup this many times, ten minutes apart. */
async function maintain(times: number): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    await service.cleanUp();
    await writer.query(
      "UPDATE user_changes_head SET noted_at = (noted_at AT TIME ZONE 'UTC' - interval '10 minutes') AT TIME ZONE 'UTC'",
    );
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
    expect(await writer.query('SELECT FROM user_changes_unnumbered')).toEqual([]);
  });
});

test('more late changes than the table of late changes has are all returned', async () => {
  await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await write(writer, 'late', 6000);
  await write(other, 'punctual');
  expect(await actorsAfter(end)).toEqual(['punctual']);
  expect((await state()).late).toEqual([]);
  await writer.query('COMMIT');

  expect((await readOn(call, `${end}&limit=1000`)).changes).toHaveLength(6001);
  expect((await call('GET', `${CHANGES}?limit=1`)).status).toBe(200);
});

test('late changes of several steps are together no more than the table of late changes has', async () => {
  await writer.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  const counts: number[] = [];
  for (const round of [1, 2]) {
    await write(writer, 'late', 3000);
    await write(other, 'punctual');
    expect(await actorsAfter(end)).toHaveLength(round);
    counts.push((await state()).late.length);
  }
  await writer.query('COMMIT');

  expect(counts).toEqual([3000, 0]);
  expect((await readOn(call, `${end}&limit=1000`)).changes).toHaveLength(6002);
});

// The service's own first cleanup may come before the second read, and settle again from the beginning.
const mayRetry = { retry: 1 };

test('a change with a lower number of Citus is returned after a higher one', mayRetry, async () => {
  for (const [node, actor] of [
    [2, 'higher'],
    [1, 'lower'],
  ] as const) {
    await writer.query(`SELECT setval('user_changes_unnumbered_sequence_seq', ${node}::bigint << 48)`);
    await write(writer, actor);
    expect((await actorsAfter(end)).at(-1)).toBe(actor);
  }

  expect(await actorsAfter(end)).toEqual(['higher', 'lower']);
  // The numbers before those of the higher node are not late.
  const [row] = await writer.query('SELECT (settled >> 48)::int AS node, late FROM user_changes_head');
  expect(row).toEqual({ node: 2, late: [] });
});
