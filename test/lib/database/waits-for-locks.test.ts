import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../../lib/database/database.ts';
import { prepare } from '../../../lib/database/prepared.ts';
import { TIME_LEFT } from '../../../lib/database/time-left.ts';
import { readSettings } from '../../../lib/settings.ts';
import { hold, untilUnderWay } from '../../stage/locks.ts';
import { createDatabase } from '../../stage/postgres.ts';
import { inDatabase } from '../../stage/rows.ts';
import { environmentOf } from '../../stage/service.ts';
import { startIssuer } from '../../stage/tokens.ts';

let database: Awaited<ReturnType<typeof createDatabase>>;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
let opened: Database;

beforeAll(async () => {
  [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  opened = openDatabase(readSettings(environmentOf(database, issuer)).postgres);
  await inDatabase(database, 'CREATE TABLE kept ()');
});

afterAll(async () => {
  await Promise.all([opened.close(1), issuer.stop()]);
  await database.drop();
});

/** In milliseconds. */
type Limit = { readonly limit: number };
const limit = sql`(select setting::int from pg_settings where name = 'lock_timeout')`;

test('a statement that may take long waits for a lock on part of their connections, with a limit of its own there', async () => {
  const read = prepare<Record<string, never>, Limit>(
    opened.statements,
    'SELECT kept',
    () => sql`select ${limit} as "limit", (select count(*) from kept)`,
  );
  const table = await hold(database, 'LOCK TABLE kept IN ACCESS EXCLUSIVE MODE');
  const waiting = Array.from({ length: 5 }, () => read({}));
  await untilUnderWay(2, database, 10, 100);
  await table.release();

  const rows = (await Promise.all(waiting)).flat();
  // What is left of the time of a request, of 5 seconds.
  expect(rows.map((row) => row.limit > 3000 && row.limit <= 5000)).toEqual(Array(5).fill(true));
});

test('every connection has its own limit again after that', async () => {
  const read = prepare<Record<string, never>, Limit>(
    opened.statements,
    'SELECT pg_sleep',
    () => sql`select ${limit} as "limit" from pg_sleep(0.2)`,
  );
  const five = await Promise.all(Array.from({ length: 5 }, () => read({})));

  expect(five.flat()).toEqual(Array(5).fill({ limit: 20 }));
});

test('so has what a statement is told', async () => {
  const read = prepare<{ told: unknown }, Limit>(
    opened.statements,
    'SELECT',
    ({ told }) => sql`select ${told}::int as "limit"`,
  );
  expect(await read({ told: TIME_LEFT })).toEqual([{ limit: 20 }]);
});
