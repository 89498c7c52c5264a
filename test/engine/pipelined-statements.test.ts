import { setImmediate as nextPass } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { withinRequest } from '../../lib/http/request-scope.ts';
import type { StatementKind as Kind } from '../../lib/postgres/index.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { outcomesOf, prepare } from '../stage/statements.ts';
import { repeat, until } from '../stage/until.ts';

const opened = openedDatabase('CREATE SEQUENCE sends');

/** A statement of this kind, with the values `given`. */
function statement<Values extends Record<string, unknown>>(
  kind: Kind,
  write: (given: Values) => RawBuilder<unknown>,
) {
  return prepare<Values, unknown>(opened.statements, 'SELECT items', write, kind);
}

const echo = () => statement<{ text: string }>('list', ({ text }) => sql`select ${text}::text as text`);
const nap = () =>
  statement<{ seconds: number }>(
    'list',
    ({ seconds }) => sql`select pg_sleep(${seconds}::float8)::text as nap`,
  );
const uuid = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const unavailable = expect.objectContaining({ code: 'service_unavailable_error' });

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

  test('each have their own result after one before them reached its time limit', async () => {
    const [sleep, read] = [nap(), echo()];
    const answeredBy = performance.now() + 100;
    const givenUp = withinRequest({ requestId: 'r', answeredBy }, () => sleep({ seconds: 0.6 }));
    const siblings = numbers(10).map((number) => read({ text: String(number) }));

    expect(await outcomesOf([givenUp])).toEqual([unavailable]);
    expect(await Promise.all(siblings)).toEqual(numbers(10).map((number) => [{ text: String(number) }]));
  });

  test('are refused if too many wait', async () => {
    const sleep = nap();
    const ends = await outcomesOf(numbers(500).map(() => sleep({ seconds: 0.01 })));

    expect(ends.filter((end) => !Array.isArray(end)).length).toBeGreaterThan(0);
    expect(ends).toEqual(ends.map((end) => (Array.isArray(end) ? [{ nap: '' }] : unavailable)));
  });
});

describe('batched reads', () => {
  const fault = uuid(999);

  beforeAll(async () => {
    await opened.query(`CREATE TABLE named (id uuid PRIMARY KEY, name text);
      INSERT INTO named SELECT ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid, number
      FROM generate_series(0, 99) AS number;
      CREATE FUNCTION checked(uuid) RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN
      IF $1 = '${fault}' THEN RAISE EXCEPTION 'a fault' USING ERRCODE = 'XX000'; END IF;
      RETURN $1; END $$;
      CREATE SEQUENCE sent`);
  });

  /** Counts the statements in `sent`. */
  const lookUp = () => {
    const select = statement<{ id: readonly [string] }>(
      'batched-read',
      ({ id }) => sql`with one as materialized (select nextval('sends'))
        select named.id, named.name from one, named
        where named.id = any(array(select checked(id) from unnest(${id}::uuid[]) as id))`,
    );
    return (id: string) => select({ id: [id] });
  };

  test('in one pass of the event loop are one statement, and each has its own result', async () => {
    const read = lookUp();
    const countSent = async () => Number((await opened.query("SELECT nextval('sends') AS count"))[0]?.count);
    const before = await countSent();
    const ids = [...numbers(50).map(uuid), uuid(7), uuid(500), uuid(8)];
    const responses = await Promise.all(ids.map(read));

    expect(responses).toEqual([
      ...numbers(50).map((number) => [{ id: uuid(number), name: String(number) }]),
      [{ id: uuid(7), name: '7' }],
      [],
      [{ id: uuid(8), name: '8' }],
    ]);
    expect(await countSent()).toBe(before + 2);
  });

  test('that wait for longer than SVC_POSTGRES_POOL_TIMEOUT to be sent are refused', async () => {
    const short = opened.open({ SVC_POSTGRES_POOL_TIMEOUT: '1' });
    onTestFinished(() => short.close(1));
    const select = prepare<{ id: readonly [string] }, unknown>(
      short.statements,
      'SELECT named',
      ({ id }) => sql`select id from pg_sleep(1.5), unnest(${id}::uuid[]) as id`,
      'batched-read',
    );
    // Two statements may be in progress. The third one waits.
    const reads: Promise<unknown>[] = [];
    for (const number of numbers(3)) {
      reads.push(select({ id: [uuid(number)] }));
      await nextPass();
    }

    await until('one waits', () => short.sessions().waitedFor === 1, { seconds: 5 });
    expect(await outcomesOf(reads)).toEqual([
      [{ id: uuid(0) }],
      [{ id: uuid(1) }],
      expect.objectContaining({ message: 'no connection became free in time' }),
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
    const others = numbers(20).map((number) => repeat(() => read(uuid(number))));
    for (const number of numbers(40)) {
      await opened.query(`UPDATE named SET name = 'after ${number}' WHERE id = '${uuid(3)}'`);
      expect(await read(uuid(3))).toEqual([{ id: uuid(3), name: `after ${number}` }]);
    }
    await Promise.all(others.map((stop) => stop()));
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

test('no session keeps the lock timeout of a statement that waited for a lock', async () => {
  const text = sql`select pg_sleep(0.1)::text, current_setting('lock_timeout') as "limit"`;
  const needing = statement('list', () => sql`${text}, (select count(*) from named)`);
  const lock = await hold(opened.database, 'LOCK TABLE named IN ACCESS EXCLUSIVE MODE');
  const waiting = numbers(5).map(() => needing({}));
  await untilUnderWay(2, opened.database, 10, 30);
  await lock.release();
  await Promise.all(waiting);
  const alone = statement('own-session', () => text);

  expect(await Promise.all(numbers(5).map(() => alone({})))).toEqual(
    numbers(5).map(() => [{ pg_sleep: '', limit: '0' }]),
  );
  const shared = statement('list', () => text);
  expect(await shared({})).toEqual([{ pg_sleep: '', limit: '20ms' }]);
});

test.each<Kind>(['list', 'own-session'])(
  'a statement is prepared again after the session has lost it: %s',
  async (kind) => {
    const read = statement(kind, () => sql`select 1 as one`);
    const forget = statement(kind, () => sql`deallocate all`);
    await read({});
    await forget({});

    expect(await Promise.all(numbers(20).map(() => read({})))).toEqual(numbers(20).map(() => [{ one: 1 }]));
  },
);

test.each<Kind>(['batched-read', 'batched-write', 'list', 'own-session'])(
  'a statement (%s) is refused if the time of its request is up, and is not sent with those of others',
  async (kind) => {
    const warnings: string[] = [];
    const keep = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`);
    process.on('warning', keep);
    onTestFinished(() => void process.off('warning', keep));
    const send = statement<{ id: readonly [string] }>(
      kind,
      ({ id }) => sql`select id, nextval('sends') from unnest(${id}::uuid[]) as given (id)`,
    );
    const [before] = await opened.query("SELECT nextval('sends')::int AS sent");
    const late = withinRequest({ requestId: 'r', answeredBy: performance.now() - 100 }, () =>
      send({ id: [uuid(1)] }),
    );
    const other = send({ id: [uuid(2)] });
    const ended = await outcomesOf([late, other]);
    const [after] = await opened.query("SELECT nextval('sends')::int AS sent");

    expect(ended).toEqual([unavailable, [expect.objectContaining({ id: uuid(2) })]]);
    expect(Number(after?.sent) - Number(before?.sent)).toBe(2);
    expect(warnings).toEqual([]);
  },
);
