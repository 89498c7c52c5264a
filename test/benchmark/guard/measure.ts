import { runMigrations } from '../../../lib/migrations/index.ts';
import { readSettings } from '../../../lib/settings/settings.ts';
import { USERS } from '../../lab/load/wire.ts';
import { percentile } from '../../lab/meters/percentile.ts';
import { administer } from '../../stage/administration.ts';
import { createDatabase } from '../../stage/postgres.ts';
import { environmentOf } from '../../stage/service.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { type CountedHost, startCountedHost } from './counted-host.ts';
import type { Totals } from './counters.ts';
import { type Request, requestsOf, USERS_THERE } from './requests.ts';

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

/** The figures of each workload, by its name. */
export type Measured = Readonly<Record<string, Figures>>;

/** What the service does for one request. */
export type Figures = Readonly<Record<Figure, number>>;

export type Figure = (typeof FIGURES)[number];

/** Each is counted, none is timed: they are the same on a slow machine, and beside others. */
export const FIGURES = [
  'statements',
  'writesToPostgres',
  'bytesToPostgres',
  'writesToClient',
  'bytesToClient',
  'promises',
  'bytesAllocated',
] as const;

/** So many come first: until then statements are prepared, tokens remembered and functions compiled. */
const WARM_UP = 40;

const BATCHES = 11;
const REQUESTS_A_BATCH = 5;

/** So many requests of a kind are sent in all. */
const REQUESTS = WARM_UP + 2 * BATCHES * REQUESTS_A_BATCH;

/**
 * What the host does for one request of this kind: the median of some batches, since timers and what they do fall into a
 * few of them. Memory is looked at apart from promises, for to be counted they need some.
 */
async function measure(host: CountedHost, requestAt: (index: number) => Request): Promise<Figures> {
  let index = 0;
  const send = async (count: number) => {
    for (let sent = 0; sent < count; sent += 1) await host.send(requestAt(index++));
  };
  const batches = async (question: 'countPromises' | 'collectGarbage') => {
    const totals = [await host.ask(question)];
    for (let batch = 0; batch < BATCHES; batch += 1) {
      await send(REQUESTS_A_BATCH);
      totals.push(await host.ask('totals'));
    }
    return totals;
  };
  await send(WARM_UP);
  const counted = await batches('countPromises');
  const allocated = await batches('collectGarbage');
  return {
    statements: perRequest(counted, 'statements'),
    writesToPostgres: perRequest(counted, 'writesToPostgres'),
    bytesToPostgres: perRequest(counted, 'bytesToPostgres'),
    writesToClient: perRequest(counted, 'writesToClient'),
    bytesToClient: perRequest(counted, 'bytesToClient'),
    promises: perRequest(counted, 'promises'),
    bytesAllocated: perRequest(allocated, 'heap'),
  };
}

function perRequest(totals: readonly Totals[], of: keyof Totals): number {
  const grown = totals.slice(1).map((total, batch) => total[of] - (totals[batch] as Totals)[of]);
  return Math.round(percentile(grown, 0.5) / REQUESTS_A_BATCH);
}
