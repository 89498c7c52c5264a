import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { StatementKind as Kind } from '../../lib/postgres/index.ts';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { prepare } from '../stage/statements.ts';

const opened = openedDatabase('CREATE TABLE kept ()', { SVC_POSTGRES_STATEMENT_TIMEOUT: '4' });
const holdTable = () => hold(opened.database, 'LOCK TABLE kept IN ACCESS EXCLUSIVE MODE');

/** In milliseconds. 0 means no limit. */
type Limit = { readonly limit: number };
const limit = sql`(select setting::int from pg_settings where name = 'lock_timeout')`;

/** The lock timeout of a statement that needs the table. */
const needing = (kind: Kind) =>
  prepare<Record<string, never>, Limit>(
    opened.statements,
    'SELECT kept',
    () => sql`select ${limit} as "limit", (select count(*) from kept) from pg_sleep(0.1)`,
    kind,
  );

test('short statements wait for a held lock in short tries, a little longer each time', async () => {
  const read = needing('list');
  const table = await holdTable();
  const waiting = Array.from({ length: 5 }, () => read({}));
  await untilUnderWay(2, opened.database, 10, 30);
  expect(opened.sessions().waitedFor).toBe(3);
  await sleep(2000);
  await table.release();

  const rows = (await Promise.all(waiting)).flat();
  expect(rows.map((row) => row.limit)).toEqual(Array(5).fill(200));
});

test('no connection keeps the lock timeout of such a wait', async () => {
  const read = needing('single');
  const five = await Promise.all(Array.from({ length: 5 }, () => read({})));

  expect(five.flat()).toEqual(Array(5).fill({ limit: 0, count: '0' }));
});

test('a statement that has no further try fails with the lock timeout of its last wait', async () => {
  const read = needing('list');
  const table = await holdTable();
  const faults = await Promise.all(Array.from({ length: 12 }, () => read({}).catch((fault) => fault)));
  await table.release();

  expect(faults.map(({ cause }) => cause?.code)).toEqual(Array(12).fill('55P03'));
  await untilUnderWay(0, opened.database);
});

test('a connection is used again at once after such a wait', async () => {
  const few = opened.open({ SVC_POSTGRES_POOL_SIZE: '4' });
  const nap = prepare<{ seconds: number }, unknown>(
    few.statements,
    'SELECT',
    ({ seconds }) => sql`select pg_sleep(${seconds}::float8)::text`,
    'single',
  );
  const read = prepare<Record<string, never>, unknown>(
    few.statements,
    'SELECT kept',
    () => sql`select count(*) from kept`,
    'list',
  );
  const table = await holdTable();
  let isOccupied = true;
  const occupying = nap({ seconds: 2 }).then(() => {
    isOccupied = false;
  });
  const waiting = read({});
  await untilUnderWay(2, opened.database, 10, 30);
  const next = nap({ seconds: 0 });
  await table.release();

  await waiting;
  await next;
  expect(isOccupied).toBe(true);
  await occupying;
  await few.close(1);
});
