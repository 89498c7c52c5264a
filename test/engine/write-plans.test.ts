import { expect, test } from 'vitest';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const service = serviceUnderTest();
/** The counters of PostgreSQL for the table of users. They are up to a second late. */
async function counts() {
  const rows = await service.database.query(
    `SELECT seq_scan::int AS scans, n_tup_ins::int AS inserts, n_tup_upd::int AS updates
     FROM pg_stat_user_tables WHERE relname = 'users'`,
  );
  return rows[0] as { scans: number; inserts: number; updates: number };
}

test('a batch that was first sent to an empty table never reads all users', async () => {
  const before = await counts();
  let sent = 0;

  await until('the batches are counted', async () => {
    sent += 1;
    const items = [{ email: `batch-${sent}@example.com`, full_name: 'One of a batch' }];
    await service.call('POST', '/api/v1/users/batch', { items, mode: 'partial' });
    return (await counts()).inserts - before.inserts > 20;
  });

  expect((await counts()).scans - before.scans).toBe(0);
});

test('an update that was first sent to an almost empty table never reads all of it', async () => {
  const users = await Promise.all(Array.from({ length: 5 }, () => service.createUser()));
  const before = await counts();

  await until('the updates are counted', async () => {
    await Promise.all(
      users.map(({ id }) => service.call('PATCH', `/api/v1/users/${id}`, { is_active: false })),
    );
    return (await counts()).updates - before.updates > 100;
  });

  expect((await counts()).scans - before.scans).toBe(0);
});
