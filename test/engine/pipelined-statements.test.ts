import { setTimeout as pause } from 'node:timers/promises';
import * as fc from 'fast-check';
import { type RawBuilder, sql } from 'kysely';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { withinRequest } from '../../lib/http/request-scope.ts';
import type { StatementKind as Kind } from '../../lib/postgres/index.ts';
import { hold } from '../stage/locks.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { outcomesOf, prepare, prepareBinary } from '../stage/statements.ts';
import { until } from '../stage/until.ts';

const opened = openedDatabase('CREATE TABLE items (id int PRIMARY KEY, note int DEFAULT 0)');

/** A statement of this kind, with the values `given`. */
function statement<Values extends Record<string, unknown>>(
  kind: Kind,
  write: (given: Values) => RawBuilder<unknown>,
) {
  return prepare<Values, unknown>(opened.statements, 'SELECT items', write, kind);
}

const echo = () =>
  statement<{ text: string }>(
    'list',
    ({ text }) => sql`select ${text}::text as text, pg_backend_pid() as at`,
  );
const nap = (kind: Kind) =>
  statement<{ seconds: number }>(
    kind,
    ({ seconds }) => sql`select pg_sleep(${seconds}::float8)::text as nap, pg_backend_pid() as at`,
  );
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const unavailable = expect.objectContaining({ code: 'service_unavailable_error' });

/** Ends the sessions that run a statement with this text. */
async function terminate(part: string): Promise<void> {
  await until('it runs', async () => {
    const rows = await opened.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%${part}%'`,
    );
    return rows.length > 0;
  });
}

describe('pipelined statements', () => {
  test('each have their own result or error', async () => {
    const divide = statement<{ by: number }>('list', ({ by }) => sql`select 12 / ${by}::int as quotient`);

    expect(await outcomesOf([4, 3, 0, 2, 1].map((by) => divide({ by })))).toEqual([
      [{ quotient: 3 }],
      [{ quotient: 4 }],
      expect.objectContaining({ message: 'PostgreSQL refused a value that validation let pass: 22012' }),
      [{ quotient: 6 }],
      [{ quotient: 12 }],
    ]);
  });

  test('that cannot be prepared fail alone, and are prepared when they can be', async () => {
    const [read, count] = [echo(), statement('list', () => sql`select count(*)::int as count from later`)];
    const answered = (text: string) => [{ text, at: expect.any(Number) }];
    const ends = await outcomesOf([
      read({ text: 'one' }),
      count({}),
      count({}),
      read({ text: 'two' }),
      count({}),
      read({ text: 'three' }),
    ]);
    await opened.query('CREATE TABLE later (id int)');

    expect(ends).toEqual([
      answered('one'),
      unavailable,
      unavailable,
      answered('two'),
      unavailable,
      answered('three'),
    ]);
    expect(await Promise.all([count({}), count({})])).toEqual([[{ count: 0 }], [{ count: 0 }]]);
  });

  test('can contain null and any text and bytes of any length', async () => {
    const same = statement<{
      text: string | null;
      bytes: Buffer;
      list: readonly (string | null)[];
      flags: readonly (boolean | null)[];
    }>(
      'list',
      ({ text, bytes, list, flags }) =>
        sql`select ${text}::text as text, ${bytes}::bytea as bytes, ${list}::text[] as list, ${flags}::boolean[] as flags, 7 as seven`,
    );
    // A list of nulls alone is null.
    const known = (list: readonly unknown[]) => list.length === 0 || list.some((one) => one !== null);
    // PostgreSQL does not store U+0000, and validation refuses it.
    const text = fc.string({ unit: 'binary', maxLength: 300 }).map((value) => value.replaceAll('\0', '0'));
    const values = fc.record({
      text: fc.option(text),
      bytes: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      list: fc.array(fc.option(text), { maxLength: 5 }).filter(known),
      flags: fc.array(fc.option(fc.boolean()), { maxLength: 5 }).filter(known),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(values, { minLength: 1, maxLength: 20 }), async (all) => {
        const responses = await Promise.all(all.map((one) => same(one)));
        expect(responses).toEqual(all.map((one) => [{ ...one, seven: 7 }]));
      }),
      { numRuns: 60 },
    );
    const long = {
      text: 'ö'.repeat(200_000),
      bytes: Buffer.alloc(300_000, 1),
      list: ['x'.repeat(100_000)],
      flags: [true],
    };
    expect(await Promise.all([same(long), same(long)])).toEqual(
      [long, long].map((one) => [{ ...one, seven: 7 }]),
    );
  });

  test('fail alone if a value cannot be a parameter, also when they were queued', async () => {
    const read = echo();
    const circular: unknown[] = [];
    circular.push(circular, null);
    const responses = await Promise.allSettled(
      numbers(200).map((number) => read({ text: (number % 9 === 0 ? circular : String(number)) as string })),
    );
    expect(responses.map(({ status }) => status)).toEqual(
      numbers(200).map((number) => (number % 9 === 0 ? 'rejected' : 'fulfilled')),
    );
    expect(await read({ text: 'after' })).toEqual([expect.objectContaining({ text: 'after' })]);
  });

  test('that need rows in binary have them, beside others that need text', async () => {
    const binary = prepareBinary<{ number: number }>(
      opened.statements,
      'SELECT items',
      ({ number }) =>
        sql`select ${number}::int, repeat('ö', ${number}::int), null from generate_series(1, 100)`,
      'list',
    );
    const read = echo();
    const responses = numbers(60).map(async (number) => {
      const [rows, [row]] = await Promise.all([binary({ number }), read({ text: String(number) })]);
      const texts = rows.map(({ bytes, at }) => {
        const length = bytes.readInt32BE(at + 8);
        const end = at + 12 + length;
        return [bytes.readInt32BE(at + 4), bytes.toString('utf8', at + 12, end), bytes.readInt32BE(end)];
      });
      return [texts, (row as { text: string }).text];
    });

    expect(await Promise.all(responses)).toEqual(
      numbers(60).map((number) => [
        Array.from({ length: 100 }, () => [number, 'ö'.repeat(number), -1]),
        String(number),
      ]),
    );
  });

  test('are reads on one connection and writes on others', async () => {
    const read = echo();
    const responses = await Promise.all(numbers(50).map((number) => read({ text: String(number) })));

    expect(responses.map(([row]) => (row as { text: string }).text)).toEqual(numbers(50).map(String));
    expect(new Set(responses.map(([row]) => (row as { at: number }).at)).size).toBe(1);
  });

  test('each have their own result after one before them reached its time limit', async () => {
    const [sleep, read] = [nap('list'), echo()];
    const answeredBy = performance.now() + 100;
    const givenUp = withinRequest({ requestId: 'r', answeredBy }, () => sleep({ seconds: 0.6 }));
    const siblings = numbers(10).map((number) => read({ text: String(number) }));

    expect(await outcomesOf([givenUp])).toEqual([unavailable]);
    expect(await Promise.all(siblings)).toEqual(
      numbers(10).map((number) => [{ text: String(number), at: expect.any(Number) }]),
    );
  });

  test('of reads are sent once more if their connection ends, 50 at once', async () => {
    const [sleep, read] = [nap('list'), echo()];
    const first = sleep({ seconds: 0.5 });
    const others = numbers(50).map((number) => read({ text: String(number) }));
    const ended = outcomesOf([first, ...others]);
    await terminate('pg_sleep');

    expect(await ended).toEqual([
      [{ nap: '', at: expect.any(Number) }],
      ...numbers(50).map((number) => [{ text: String(number), at: expect.any(Number) }]),
    ]);
  });

  test('do not wait for a slow statement', async () => {
    const [sleep, read] = [nap('single'), echo()];
    const ended: string[] = [];
    const long = numbers(8).map(() => sleep({ seconds: 0.3 }).then(() => ended.push('single')));
    const short = numbers(50).map((number) => read({ text: String(number) }).then(() => ended.push('short')));
    await Promise.all([...long, ...short]);

    expect(ended).toEqual([...short.map(() => 'short'), ...long.map(() => 'single')]);
  });

  test('are refused if too many wait', async () => {
    const sleep = nap('list');
    const ends = await outcomesOf(numbers(500).map(() => sleep({ seconds: 0.01 })));

    expect(ends.filter((end) => !Array.isArray(end)).length).toBeGreaterThan(0);
    expect(ends).toEqual(
      ends.map((end) => (Array.isArray(end) ? [{ nap: '', at: expect.any(Number) }] : unavailable)),
    );
  });
});

describe('batched reads', () => {
  const uuid = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
  const [fault, slow] = [uuid(999), uuid(998)];

  beforeAll(async () => {
    await opened.query('CREATE TABLE named (id uuid PRIMARY KEY, name text)');
    await opened.query(`INSERT INTO named SELECT ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid, number
      FROM generate_series(0, 99) AS number`);
    await opened.query(`CREATE FUNCTION checked(uuid) RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN
      IF $1 = '${fault}' THEN RAISE EXCEPTION 'a fault' USING ERRCODE = 'XX000'; END IF;
      IF $1 = '${slow}' THEN PERFORM pg_sleep(0.8); END IF; RETURN $1; END $$`);
    await opened.query('CREATE SEQUENCE sent');
  });

  /** Counts the statements in `sent`. */
  const lookUp = () => {
    const select = statement<{ id: readonly [string] }>(
      'batched-read',
      ({ id }) => sql`with one as materialized (select nextval('sent'))
        select named.id, named.name from one, named
        where named.id = any(array(select checked(id) from unnest(${id}::uuid[]) as id))`,
    );
    return (id: string) => select({ id: [id] });
  };

  /** Reads with names, and the names of those that have ended, in that order. */
  function lookingUp() {
    const read = lookUp();
    const ended: string[] = [];
    async function reading(id: string, name: string): Promise<void> {
      await read(id);
      ended.push(name);
    }
    return { reading, ended };
  }

  test('in one pass of the event loop are one statement, and each has its own result', async () => {
    const read = lookUp();
    const [before] = await opened.query("SELECT nextval('sent')::int AS count");
    const ids = [...numbers(50).map(uuid), uuid(7), uuid(500), uuid(8)];
    const responses = await Promise.all(ids.map(read));
    const [after] = await opened.query("SELECT nextval('sent')::int AS count");

    expect(responses).toEqual([
      ...numbers(50).map((number) => [{ id: uuid(number), name: String(number) }]),
      [{ id: uuid(7), name: '7' }],
      [],
      [{ id: uuid(8), name: '8' }],
    ]);
    expect(Number(after?.count) - Number(before?.count)).toBe(2);
  });

  test('during two statements in progress are one statement after them', async () => {
    const { reading, ended } = lookingUp();
    const [before] = await opened.query("SELECT nextval('sent')::int AS count");
    const first = reading(slow, 'first');
    await pause(50);
    const second = reading(uuid(50), 'second');
    await pause(50);
    const others: Promise<void>[] = [];
    for (const number of numbers(20)) {
      await pause(2);
      others.push(reading(uuid(number), 'other'));
    }
    await Promise.all([first, second, ...others]);
    const [after] = await opened.query("SELECT nextval('sent')::int AS count");

    expect(ended).toEqual(['first', 'second', ...others.map(() => 'other')]);
    expect(Number(after?.count) - Number(before?.count)).toBe(4);
  });

  test('that wait for longer than SVC_POSTGRES_POOL_TIMEOUT to be sent are refused', async () => {
    const short = opened.open({ SVC_POSTGRES_POOL_TIMEOUT: '0.3' });
    onTestFinished(() => short.close(1));
    const select = prepare<{ id: readonly [string] }, unknown>(
      short.statements,
      'SELECT named',
      ({ id }) => sql`select checked(id) as id from unnest(${id}::uuid[]) as id`,
      'batched-read',
    );
    const read = (id: string) => select({ id: [id] });
    await read(uuid(1));
    const inProgress = [read(slow)];
    await pause(50);
    inProgress.push(read(uuid(2)));
    await pause(50);
    const waiting = read(uuid(1));
    const answered = inProgress.map((one) => one.then(() => 'answered'));
    const first = Promise.race([...answered, waiting.catch(({ message }) => message)]);

    expect(await first).toBe('no connection became free in time');
    expect(await outcomesOf([waiting, ...inProgress])).toEqual([
      unavailable,
      [{ id: slow }],
      [{ id: uuid(2) }],
    ]);
  });

  test('that fail together are sent one by one, and only the faulty one fails', async () => {
    const read = lookUp();
    const ended = await outcomesOf([...numbers(9).map(uuid), fault, uuid(9)].map(read));

    expect(ended).toEqual([
      ...numbers(9).map((number) => [{ id: uuid(number), name: String(number) }]),
      expect.objectContaining({ message: 'a fault' }),
      [{ id: uuid(9), name: '9' }],
    ]);
  });

  test('see every write before them, also if many are in progress', async () => {
    const read = lookUp();
    const reading = { isOver: false };
    const others = numbers(20).map(async (number) => {
      while (!reading.isOver) await read(uuid(number));
    });
    for (const number of numbers(40)) {
      await opened.query(`UPDATE named SET name = 'after ${number}' WHERE id = '${uuid(3)}'`);
      expect(await read(uuid(3))).toEqual([{ id: uuid(3), name: `after ${number}` }]);
    }
    reading.isOver = true;
    await Promise.all(others);
  });

  test('are returned to the others after one reached its time limit', async () => {
    const lock = await hold(opened.database, 'LOCK TABLE named IN ACCESS EXCLUSIVE MODE');
    const read = lookUp();
    const givenUp = withinRequest({ requestId: 'r', answeredBy: performance.now() + 300 }, () =>
      read(uuid(1)),
    );
    const other = read(uuid(2));
    const ended = await outcomesOf([givenUp]);
    await lock.release();

    expect(ended).toEqual([unavailable]);
    expect(await other).toEqual([{ id: uuid(2), name: '2' }]);
  });
});

describe('a prepared statement', () => {
  const kinds: readonly Kind[] = ['list', 'single'];

  test.each(kinds)('is prepared again after a migration has changed its columns: %s', async (kind) => {
    await opened.query(`CREATE TABLE changed_${kind} (value int)`);
    await opened.query(`INSERT INTO changed_${kind} VALUES (1)`);
    const table = sql.raw(`changed_${kind}`);
    const read = statement(kind, () => sql`select value from ${table}`);
    const before = await Promise.all(numbers(20).map(() => read({})));
    await opened.query(`ALTER TABLE changed_${kind} ALTER value TYPE text`);
    const after = await Promise.all(numbers(20).map(() => read({})));

    expect(before).toEqual(before.map(() => [{ value: 1 }]));
    expect(after).toEqual(after.map(() => [{ value: '1' }]));
  });

  test.each(kinds)('is prepared again after the session has lost it: %s', async (kind) => {
    const [read, forget] = [
      statement(kind, () => sql`select 1 as one`),
      statement(kind, () => sql`deallocate all`),
    ];
    await read({});
    await forget({});

    expect(await Promise.all(numbers(20).map(() => read({})))).toEqual(numbers(20).map(() => [{ one: 1 }]));
  });
});
