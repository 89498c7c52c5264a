import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, test } from 'vitest';
import { type Reading, selectOfAll, selectOfUser } from '../../lib/changes/feed-page.ts';
import { ChangeNumbering } from '../../lib/changes/numbering.ts';
import { hold } from '../stage/locks.ts';
import { migratedDatabase } from '../stage/opened-database.ts';
import { prepare, statementsRunBy } from '../stage/statements.ts';

/** How often changes are numbered while a snapshot is open, and how many each time. */
const NUMBERINGS = 3000;
const CHANGES = 50;

/** More than any statement changes. */
const NOTHING: Omit<Reading, 'after'> = { limit: 100, userId: undefined, excludeActor: undefined };

const migrated = migratedDatabase(async (client) => {
  // As in the sessions of the service: a plan that PostgreSQL made for small tables may be kept.
  await client.query('SET enable_seqscan = off');
  // Statistics that autovacuum would collect about empty tables.
  for (const table of ['user_changes', 'user_changes_head', 'user_changes_unnumbered', 'users'])
    await client.query(`VACUUM ANALYZE ${table}`);
});

/** The statements that were run, by the names under which they are prepared, once, as on a connection of the service. */
const ran: { readonly name: string; readonly values: readonly unknown[] }[] = [];

const statements = statementsRunBy(async ({ sql: text, name }, values) => {
  ran.push({ name, values });
  return (await migrated.client.query({ text, name, values: [...values] })).rows;
});

const select = prepare(statements, 'SELECT user_changes', selectOfAll);
const selectUser = prepare(statements, 'SELECT user_changes', selectOfUser);
const numbering = new ChangeNumbering(statements);

const write = (count: number) =>
  migrated.client.query(`
    INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
    SELECT gen_random_uuid(), 1, 1, 0, 'a', '', now() FROM generate_series(1, ${count})
  `);

const head = async () =>
  Number((await migrated.client.query('SELECT max(position) AS head FROM user_changes')).rows[0].head);

const looks = {
  'at the head': async () => select({ ...NOTHING, after: await head() }),
  'at the head, without an actor': async () => select({ ...NOTHING, excludeActor: 'b', after: await head() }),
  'behind the head': async () => select({ ...NOTHING, after: (await head()) - 10 }),
  'for the head': () => select({ ...NOTHING, after: Number.MAX_SAFE_INTEGER, limit: 0 }),
  'at the changes of an unknown user': async () =>
    selectUser({ ...NOTHING, userId: randomUUID(), after: await head() }),
  'at what has no position': () => numbering.countUnnumbered(),
  'that numbers a change': async () => {
    await write(1);
    await numbering.numberChanges();
  },
} as const satisfies Record<string, () => Promise<unknown>>;

/** The pages of 8 KB that each query reads, by PostgreSQL's count for this connection. */
async function pagesOfLooks() {
  const pages: Record<string, number> = {};
  for (const [title, look] of Object.entries(looks)) pages[title] = await pagesOf(look);
  return pages;
}

async function pagesOf(look: () => Promise<unknown>): Promise<number> {
  ran.length = 0;
  await look();
  let pages = 0;
  for (const { name, values } of ran) {
    const literals = values.map((value) => (value == null ? 'NULL' : pg.escapeLiteral(`${value}`)));
    const given = literals.length > 0 ? `(${literals})` : '';
    const { rows } = await migrated.client.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE "${name}" ${given}`,
    );
    const { Plan } = rows[0]['QUERY PLAN'][0];
    pages += Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'];
  }
  return pages;
}

test('while a snapshot is open, each query reads as much as before, after any number of changes', async () => {
  await write(20);
  await numbering.numberChanges();
  for (let count = 0; count < 10; count += 1) for (const look of Object.values(looks)) await look();
  const before = await pagesOfLooks();
  const snapshot = await hold(
    migrated.database,
    'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ',
    'SELECT FROM users',
  );
  for (let count = 0; count < NUMBERINGS; count += 1) {
    await write(CHANGES);
    await numbering.numberChanges();
  }
  const after = await pagesOfLooks();
  await snapshot.release();

  for (const title of Object.keys(looks))
    expect(after[title], title).toBeLessThanOrEqual(3 * (before[title] ?? 0));
}, 120_000);
