import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { Changes } from '../../lib/changes/changes.ts';
import { ChangesQuery } from '../../lib/changes/changes-query.ts';
import { ChangeNumbering } from '../../lib/changes/numbering.ts';
import { Cleanup } from '../../lib/cleanup.ts';
import { Readiness } from '../../lib/migrations/readiness.ts';
import { UserBatches } from '../../lib/users/batch/create-batch.ts';
import { UserBatch } from '../../lib/users/batch/user-batch.ts';
import { IdempotentCreates } from '../../lib/users/idempotent-creates.ts';
import { cursorAfter } from '../../lib/users/list-cursor.ts';
import { UserListQuery } from '../../lib/users/list-query.ts';
import { TakenValues } from '../../lib/users/taken-values.ts';
import { UserList } from '../../lib/users/user-list.ts';
import { Users } from '../../lib/users/users.ts';
import { migratedDatabase } from '../stage/opened-database.ts';
import { statementsRunBy } from '../stage/statements.ts';

/** PostgreSQL's default of `jit_above_cost`. A statement of a higher estimated cost is compiled, for up to a second. */
const COMPILED_ABOVE = 100_000;

/** Numbers of users. Suites add a larger one. */
const SIZES = [0, 1000, ...(process.env.TEST_USERS ? [Number(process.env.TEST_USERS)] : [])];

const AUTHOR = { actor: 'a', request_id: 'r' };
let unused = 0;
const fresh = () => `fresh-${unused++}`;
const item = (external_id: string | null = null) => ({ email: `${fresh()}@example.com`, external_id });

/** Sends every statement of the service with PostgreSQL's defaults, and resolves with the estimated costs by texts. */
async function costsOf(client: pg.Client) {
  const costs = new Map<string, number>();
  const statements = statementsRunBy(async ({ sql, isBinary }, values) => {
    const { rows: plans } = await client.query(`EXPLAIN (FORMAT JSON) ${sql}`, [...values]);
    costs.set(sql, Math.max(costs.get(sql) ?? 0, plans[0]['QUERY PLAN'][0].Plan['Total Cost']));
    const { rows } = await client.query(sql, [...values]);
    return isBinary ? [] : rows;
  });
  const [taken, keyed] = [new TakenValues(statements), new IdempotentCreates(statements)];
  const users = new Users(statements, taken, keyed);
  const batches = new UserBatches(statements, taken, keyed);
  const changes = new Changes(statements);
  const create = (given: object, key?: string) =>
    users.create({ full_name: null, ...given } as never, AUTHOR, key);

  const one = { ...item(), external_id: fresh() };
  const { id } = (await create(one)).created;
  await create(one).catch(() => {});
  const key = fresh();
  await create(item(), key);
  await create(item(), key).catch(() => {});
  await users.update(id, { full_name: 'Ada' }, { ifMatch: ['"1"'] }, AUTHOR);
  for (const mode of ['atomic', 'partial'])
    for (const hasId of [false, true])
      for (const batchKey of [undefined, fresh()]) {
        const items = Array.from({ length: 100 }, () => item(hasId ? fresh() : null));
        const batch = UserBatch.parse({ mode, items });
        await batches.create(batch, AUTHOR, batchKey);
        await batches.create(batch, AUTHOR, batchKey).catch(() => {});
      }
  const list = new UserList(statements);
  const ids = Array.from({ length: 100 }, () => id).join();
  const [created_after, created_before] = ['2020-01-01T00:00:00Z', '2036-01-01T00:00:00Z'];
  const filters = [
    {},
    { created_after },
    { created_before },
    { created_after, created_before },
    { ids },
    one,
  ];
  for (const sort of ['created_at', '-created_at'])
    for (const is_active of [undefined, 'true', 'false'])
      for (const filter of filters)
        for (const place of [undefined, { created_at: Date.now(), id }]) {
          const selection = { sort, ...filter, ...(is_active && { is_active }) };
          const cursor = place && cursorAfter(place, selection);
          await list.read(UserListQuery.parse({ limit: '1000', ...selection, ...(cursor && { cursor }) }));
        }
  await list.read(UserListQuery.parse({ email: one.email }));
  await list.read(UserListQuery.parse({ external_id: one.external_id }));
  await new ChangeNumbering(statements).countUnnumbered();
  for (const query of [{}, { cursor: 'now' }, { cursor: 'LjA', exclude_actor: 'b' }])
    await changes.ofAll(ChangesQuery.parse({ limit: '1000', ...query }));
  await changes.ofUser(id, { cursor: undefined, limit: 1000 });
  await users.delete(id, { ifMatch: ['"2"'] }, AUTHOR);
  await new Cleanup(statements, 30).run();
  await new Readiness({ statements } as never).findSchemaState();
  return costs;
}

describe.each(SIZES)('with %i users, PostgreSQL compiles no statement', (size) => {
  const migrated = migratedDatabase(async (client) => {
    await client.query(`
      INSERT INTO users (id, email, is_active, created_at, external_id)
      SELECT md5(n::text)::uuid, 'user-' || n || '@example.com', n % 100 <> 0, '2026-01-01Z'::timestamptz + n * interval '1 s', 'hr-' || n
      FROM generate_series(1, ${size}) AS n;
      INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
      SELECT id, 1, 1, 0, 'a', '', now() FROM users`);
  });

  test.each(['before', 'after'])('%s it has analyzed the tables', async (when) => {
    if (when === 'after') await migrated.client.query('ANALYZE');
    const costs = await costsOf(migrated.client);

    expect(costs.size).toBeGreaterThan(70);
    expect([...costs].filter(([, cost]) => cost > COMPILED_ABOVE)).toEqual([]);
  });
});
