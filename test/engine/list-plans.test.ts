import { describe, expect, test } from 'vitest';
import { cursorAfter } from '../../lib/users/list-cursor.ts';
import { UserListQuery } from '../../lib/users/list-query.ts';
import { UserList } from '../../lib/users/user-list.ts';
import { migratedDatabase } from '../stage/opened-database.ts';
import { plansOver } from '../stage/plans.ts';
import { statementSentBy } from '../stage/statements.ts';

const BEGIN = Date.parse('2026-01-01T00:00:00Z');

/** 100,000 users, one per second. One in 100 is inactive. */
const migrated = migratedDatabase(async (client) => {
  await client.query(`
    INSERT INTO users (id, email, is_active, created_at, updated_at, external_id)
    SELECT md5(n::text)::uuid, 'user-' || n || '@example.com', n % 100 <> 0, t, t, 'hr-' || n
    FROM generate_series(0, 99999) AS n,
         LATERAL (SELECT '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second' AS t) AS times
  `);
  await client.query('VACUUM ANALYZE users');
});

/** The time at which the user with this number was created. */
const timeOf = (number: number) => new Date(BEGIN + number * 1000).toISOString();

/** A query for ten users, after the user with this number if there is one. */
function queryOf(parameters: Readonly<Record<string, string>>, after?: number): UserListQuery {
  const selection = { sort: 'created_at', ...parameters };
  const position = { created_at: BEGIN + Number(after) * 1000, id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' };
  const cursor = after === undefined ? {} : { cursor: cursorAfter(position, selection) };
  return UserListQuery.parse({ limit: '10', ...selection, ...cursor });
}

const statementOf = (query: UserListQuery) =>
  statementSentBy((statements) => new UserList(statements).read(query));

const ALL = 'users_created_at_id_idx';
const INACTIVE = 'users_inactive_created_at_id_idx';
const EMAIL = 'users_email_key';
const EXTERNAL_ID = 'users_external_id_key';
const ID = 'users_pkey';

const IDS = Array.from(
  { length: 100 },
  (_, n) => `00000000-0000-0000-0000-0000000000${String(n).padStart(2, '0')}`,
);

describe.each([
  ['with the values known', 'known'],
  ['as a named statement', 'named'],
] as const)('a list of ten of 100,000 users reads a few pages, %s:', (_case, kind) => {
  test.each<readonly [string, Readonly<Record<string, string>>, number | undefined, string]>([
    ['the first', {}, undefined, ALL],
    ['the last', {}, 99_989, ALL],
    ['the newest', { sort: '-created_at' }, undefined, ALL],
    ['the last active', { is_active: 'true' }, 99_980, ALL],
    ['the last inactive', { is_active: 'false' }, 98_999, INACTIVE],
    ['the oldest inactive, newest first', { is_active: 'false', sort: '-created_at' }, 1000, INACTIVE],
    ['the first after a time', { created_after: timeOf(50_000) }, undefined, ALL],
    ['the last after a time', { created_after: timeOf(10) }, 99_989, ALL],
    ['the last before a time', { created_before: timeOf(99_990) }, 99_980, ALL],
    [
      'the last inactive between two times',
      { is_active: 'false', created_after: timeOf(10), created_before: timeOf(99_990) },
      98_999,
      INACTIVE,
    ],
    ['of an external id', { external_id: 'hr-5' }, undefined, EXTERNAL_ID],
    ['of an email', { email: 'USER-5@example.com' }, undefined, EMAIL],
    [
      'of an email and all other filters',
      { email: 'USER-5@example.com', is_active: 'true', created_after: timeOf(1) },
      2,
      EMAIL,
    ],
    ['of two ids', { ids: `${IDS[0]},${IDS[1]}` }, undefined, ID],
  ])('%s', async (_title, parameters, after, index) => {
    const cost = await plansOver(migrated.client)[kind](await statementOf(queryOf(parameters, after)));

    expect(cost).toEqual({
      indexes: [index],
      wholeTables: [],
      inVain: expect.any(Number),
      pages: expect.any(Number),
    });
    expect(cost.inVain).toBeLessThanOrEqual(1);
    expect(cost.pages).toBeLessThanOrEqual(25);
  });

  test('100 ids cost no more than their lookups', async () => {
    const cost = await plansOver(migrated.client)[kind](await statementOf(queryOf({ ids: IDS.join() })));

    expect(cost).toEqual({ indexes: [ID], wholeTables: [], inVain: 0, pages: expect.any(Number) });
    expect(cost.pages).toBeLessThanOrEqual(310);
  });
});

describe('a lookup that PostgreSQL planned while there were no users uses the index', () => {
  const empty = migratedDatabase(async () => {});

  test.each([
    ['of an email', { email: 'user-5@example.com' }, EMAIL],
    ['of an external id', { external_id: 'hr-5' }, EXTERNAL_ID],
  ])('%s', async (_title, parameters, index) => {
    const cost = await plansOver(empty.client).named(await statementOf(queryOf(parameters)));

    expect([cost.indexes, cost.wholeTables]).toEqual([[index], []]);
  });
});
