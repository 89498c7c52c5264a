import { expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const service = serviceUnderTest();

test('an update that was first sent when there were hardly any users never reads all of them', async () => {
  const users = await Promise.all(Array.from({ length: 5 }, () => service.createUser()));
  const admin = await administer(service.database.name);
  const scans = async () => {
    const rows = await admin.query(
      "SELECT seq_scan::int AS all, n_tup_upd::int AS updates FROM pg_stat_user_tables WHERE relname = 'users'",
    );
    return rows[0] as { all: number; updates: number };
  };
  const before = await scans();

  // PostgreSQL counts a second after the fact.
  await until('the updates are counted', async () => {
    await Promise.all(
      users.map(({ id }) => service.call('PATCH', `/api/v1/users/${id}`, { is_active: false })),
    );
    return (await scans()).updates - before.updates > 100;
  });
  const after = await scans();
  await admin.end();

  expect(after.all - before.all).toBe(0);
});
