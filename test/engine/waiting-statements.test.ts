import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../lib/postgres/database.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { untilUnderWay } from '../stage/locks.ts';
import { createDatabase } from '../stage/postgres.ts';
import { inDatabase } from '../stage/rows.ts';
import { environmentOf } from '../stage/service.ts';
import { prepare } from '../stage/statements.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';

let database: Awaited<ReturnType<typeof createDatabase>>;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
let opened: Database;

beforeAll(async () => {
  [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  const patient = { SVC_POSTGRES_STATEMENT_TIMEOUT: '60', SVC_POSTGRES_POOL_TIMEOUT: '60' };
  opened = openDatabase(readSettings({ ...environmentOf(database, issuer), ...patient }).postgres);
  await inDatabase(
    database,
    'CREATE TABLE released ()',
    `CREATE FUNCTION held() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
      WHILE NOT EXISTS (SELECT FROM released) LOOP PERFORM pg_sleep(0.01); END LOOP;
      RETURN 1;
    END $$`,
  );
});

beforeEach(() => inDatabase(database, 'TRUNCATE released'));

afterAll(async () => {
  await Promise.all([opened.close(1), issuer.stop()]);
  await database.drop();
});

/** Takes until `release()`, for any number of ids at once. */
function holding(kind: 'batched-read' | 'batched-write') {
  const hold = prepare<{ ids: readonly [string] }, { id: string }>(
    opened.statements,
    'SELECT ids',
    ({ ids }) => sql`with held as materialized (select held())
      select id from held, unnest(${ids}::uuid[]) as id`,
    kind,
  );
  return (number: number) => hold({ ids: [idOf(number)] });
}

const release = () => inDatabase(database, 'INSERT INTO released DEFAULT VALUES');
const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const waitedFor = (count: number) =>
  until(`${count} wait`, () => opened.connections().waitedFor === count, { every: 1 });

describe('statements that wait for a connection include', () => {
  test('reads that are batched during a statement in progress', async () => {
    const hold = holding('batched-read');
    const first = hold(0);
    await untilUnderWay(1, database);
    const batched = numbers(5).map((number) => hold(number + 1));

    expect(opened.connections()).toMatchObject({ waitedFor: 5 });
    await release();
    expect(await Promise.all([first, ...batched])).toEqual(
      numbers(6).map((number) => [{ id: idOf(number) }]),
    );
    expect(opened.connections()).toMatchObject({ waitedFor: 0 });
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
    await inDatabase(database, 'SELECT');

    expect(opened.connections()).toMatchObject({ waitedFor: 5 });
    await release();
    expect(await Promise.all([...sent, ...batched])).toEqual(
      numbers(8).map((number) => [{ id: idOf(number) }]),
    );
    expect(opened.connections()).toMatchObject({ waitedFor: 0 });
  });
});
