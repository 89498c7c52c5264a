import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilUnderWay } from '../stage/locks.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { prepare } from '../stage/statements.ts';
import { until } from '../stage/until.ts';

const opened = openedDatabase(
  `CREATE TABLE released ();
   CREATE FUNCTION held() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
     WHILE NOT EXISTS (SELECT FROM released) LOOP PERFORM pg_sleep(0.01); END LOOP;
     RETURN 1;
   END $$`,
  { SVC_POSTGRES_STATEMENT_TIMEOUT: '60', SVC_POSTGRES_POOL_TIMEOUT: '60' },
);

beforeEach(() => opened.query('TRUNCATE released'));

/** Takes until `release()`, for any number of ids at once. */
function holding(kind: 'batched-read' | 'batched-write') {
  const hold = prepare<{ id: readonly [string] }, { id: string }>(
    opened.statements,
    'SELECT ids',
    ({ id }) => sql`with held as materialized (select held())
      select id from held, unnest(${id}::uuid[]) as id`,
    kind,
  );
  return (number: number) => hold({ id: [idOf(number)] });
}

const release = () => opened.query('INSERT INTO released DEFAULT VALUES');
const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const waitedFor = (count: number) =>
  until(`${count} wait`, () => opened.sessions().waitedFor === count, { every: 1 });

describe('statements that wait for a connection include', () => {
  test('reads that are batched during a statement in progress', async () => {
    const hold = holding('batched-read');
    const first = hold(0);
    await untilUnderWay(1, opened.database);
    const batched = numbers(5).map((number) => hold(number + 1));

    expect(opened.sessions()).toMatchObject({ waitedFor: 5 });
    await release();
    expect(await Promise.all([first, ...batched])).toEqual(
      numbers(6).map((number) => [{ id: idOf(number) }]),
    );
    expect(opened.sessions()).toMatchObject({ waitedFor: 0 });
  });

  test('writes that are batched while all connections for writes are in use', async () => {
    const hold = holding('batched-write');
    const sent: Promise<unknown>[] = [];
    for (const number of numbers(3)) {
      sent.push(hold(number));
      await waitedFor(0);
    }
    const batched = numbers(5).map((number) => hold(number + 3));
    // Enough time to be sent.
    await opened.query('SELECT');

    expect(opened.sessions()).toMatchObject({ waitedFor: 5 });
    await release();
    expect(await Promise.all([...sent, ...batched])).toEqual(
      numbers(8).map((number) => [{ id: idOf(number) }]),
    );
    expect(opened.sessions()).toMatchObject({ waitedFor: 0 });
  });
});
