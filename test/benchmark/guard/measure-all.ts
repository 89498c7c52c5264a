import { runMigrations } from '../../../lib/migrations/index.ts';
import { readSettings } from '../../../lib/settings/settings.ts';
import { administer } from '../../stage/administration.ts';
import { createDatabase } from '../../stage/postgres.ts';
import { environmentOf } from '../../stage/service.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { USERS } from '../workloads/workload.ts';
import type { Measured } from './compare.ts';
import { startCountedHost } from './counted-host.ts';
import { type Figures, measure, REQUESTS } from './measure.ts';
import { requestsOf, USERS_THERE } from './requests.ts';

/**
 * Measures these workloads, or all of them, with a host and a database of their own; `preloaded` are modules that the host
 * loads before anything else.
 */
export async function measureAll({
  only,
  preloaded,
}: {
  readonly only?: readonly string[];
  readonly preloaded?: readonly string[];
} = {}): Promise<Measured> {
  const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  const variables = environmentOf(database, issuer);
  await runMigrations(readSettings(variables).postgres);
  await addUsers(database.name);
  const host = await startCountedHost(variables, preloaded);
  try {
    const token = await issuer.sign();
    const fresh = await Promise.all(
      Array.from({ length: REQUESTS }, (_, number) => issuer.sign({ jti: String(1000 + number) })),
    );
    const head = await host.send({
      method: 'GET',
      path: `${USERS}changes?cursor=now&limit=0`,
      status: 200,
      token,
    });
    const measured: Record<string, Figures> = {};
    for (const [name, requestAt] of Object.entries(requestsOf({ token, fresh, head: String(head) }))) {
      if (!only || only.includes(name)) measured[name] = await measure(host, requestAt);
    }
    return measured;
  } finally {
    await host.stop();
    await Promise.all([issuer.stop(), database.drop()]);
  }
}

/** With the ids and addresses that the benchmark gives to users of these numbers. */
async function addUsers(name: string): Promise<void> {
  const admin = await administer(name);
  await admin.query(`INSERT INTO users (id, email, full_name, created_at, updated_at)
    SELECT ('018f0000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid, 'user-' || number || '@example.com',
      'User ' || number, moment, moment
    FROM generate_series(1, ${USERS_THERE}) AS number, to_timestamp(1704067200 + number) AS moment`);
  await admin.query('ANALYZE users');
  await admin.end();
}
