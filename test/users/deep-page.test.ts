import { beforeAll, expect, test } from 'vitest';
import { hold, untilUnderWay } from '../stage/locks.ts';
import { success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const ALL = 2600;

/** A lock of PostgreSQL. The session that holds it keeps the gate closed. */
const GATE = 11;

const service = serviceUnderTest(() => ({ SVC_POSTGRES_STATEMENT_TIMEOUT: '15' }));
const { call } = service;

/** The table behind a gate: a statement that reads user number 2,450 waits until the gate is open. */
beforeAll(async () => {
  await service.database.query(
    `INSERT INTO users (id, email, full_name, created_at)
     SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, n || '@example.com', n, '2024-01-01Z'::timestamptz + n * interval '1 second'
     FROM generate_series(1, ${ALL}) AS n`,
    'ALTER TABLE users RENAME TO all_users',
    'ANALYZE all_users',
    `CREATE FUNCTION passes(number text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
       WHILE number = '2450' AND NOT pg_try_advisory_xact_lock_shared(${GATE}) LOOP PERFORM pg_sleep(0.01); END LOOP;
       RETURN true;
     END $$`,
    'CREATE VIEW users AS SELECT * FROM all_users WHERE passes(full_name)',
  );
});

test.each([
  ['deep inside', 2500, 10],
  ['of a thousand users', 1500, 1000],
])('reads have responses while pages %s take long, and the pages follow', async (_, skip, limit) => {
  const page = `${USERS}?skip=${skip}&limit=${limit}`;
  const found = await call('GET', page);
  expect((found.body as readonly UserBody[]).map(({ full_name }) => full_name)).toEqual(
    Array.from({ length: limit }, (_, index) => String(skip + 1 + index)),
  );

  const gate = await hold(service.database, `SELECT pg_advisory_xact_lock(${GATE})`);
  const ended: string[] = [];
  const slow = times(4, () => call('GET', page).finally(() => ended.push('slow')));
  await untilUnderWay(4, service.database);
  const [first] = (await call('GET', `${USERS}?limit=1`)).body as [UserBody];
  const byEmail = `${USERS}?email=${encodeURIComponent(first.email)}`;
  const reads = await times(50, (index) => call('GET', index % 2 === 0 ? USERS + first.id : byEmail));

  expect(ended).toEqual([]);
  expect(reads).toEqual(
    reads.map((_, index) => (index % 2 === 0 ? success(200, first, { etag: '"1"' }) : success(200, [first]))),
  );
  await gate.release();
  const { link = '' } = found.headers;
  expect(await slow).toEqual(Array(4).fill(success(200, found.body, { link })));
});
