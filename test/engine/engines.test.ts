import { expect, inject, test } from 'vitest';
import { runMigrations } from '../../lib/migrations/index.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { isCitus } from '../stage/citus.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { emptyDatabase } from '../stage/opened-database.ts';
import { addressOf, startProxy, through } from '../stage/proxy.ts';
import { freshAddress } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';
import { times } from '../stage/until.ts';

/** Features that an engine may lack. */
const PECULIAR = [
  'pg_try_advisory_lock',
  'lock_timeout',
  '-c client_connection_check_interval',
  '-c default_transaction_isolation',
  '-c statement_timeout',
  'autovacuum',
];

/** Everything that an instance sends to PostgreSQL, from its first migration to a create under a key. */
async function sentBy(variables: Variables): Promise<string> {
  const proxy = await forThisTest(startProxy, inject('postgres'));
  let sent = '';
  proxy.requestsThrough(() =>
    through(async (chunk, push) => {
      sent += chunk.toString('latin1');
      push(chunk);
    }),
  );
  const service = await forThisTest(startService, { ...addressOf(proxy), ...variables });
  const headers = { 'idempotency-key': 'some-key' };
  const created = await service.call('POST', '/api/v1/users/', { email: freshAddress() }, { headers });
  expect(created.status).toBe(201);
  return sent;
}

const ENGINES = [
  ['distributed', []],
  // Citus refuses a command of a migration for PostgreSQL.
  ...(isCitus ? [] : [['postgresql', PECULIAR] as const]),
] as const;

test.each(ENGINES)(
  'the engine %s receives, of the features that an engine may lack, %j',
  async (engine, received) => {
    const sent = await sentBy({ SVC_POSTGRES_ENGINE: engine });

    expect(PECULIAR.filter((word) => sent.includes(word))).toEqual(received);
  },
);

test('concurrent migrations of a distributed engine have no lock, and all succeed', async () => {
  const { admin, settings } = await emptyDatabase();
  await times(8, () => runMigrations({ ...settings, engine: 'distributed' }));

  expect(await admin.query('SELECT count(*)::int FROM user_changes_head')).toEqual([{ count: 1 }]);
  expect(
    await admin.query(
      'SELECT count(*)::int FROM pg_index JOIN pg_class ON oid = indexrelid WHERE NOT indisvalid',
    ),
  ).toEqual([{ count: 0 }]);
});
