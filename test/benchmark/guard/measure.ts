import { runMigrations } from '../../../lib/migrations/index.ts';
import { readSettings } from '../../../lib/settings/settings.ts';
import { type Request, USERS } from '../../lab/load/wire.ts';
import { percentile } from '../../lab/meters/percentile.ts';
import { startSurroundings } from '../../stage/service.ts';
import { times } from '../../stage/until.ts';
import { fill, idOf } from '../stage/users.ts';
import { type Workload, workloads } from '../workloads.ts';
import { type CountedHost, startCountedHost } from './counted-host.ts';
import type { Totals } from './counters.ts';

/**
 * Measures these workloads, or all of them, with a host and a database of their own; `preloaded` are modules that the host
 * loads before anything else.
 */
export async function measureAll(only?: readonly string[], preloaded?: readonly string[]): Promise<Measured> {
  const { database, issuer, environment, stop } = await startSurroundings();
  await runMigrations(readSettings(environment).postgres);
  await fill(database.query, USERS_THERE, () => {});
  const host = await startCountedHost(environment, preloaded);
  try {
    const token = await issuer.sign();
    const freshTokens = await times(REQUESTS, (number) => issuer.sign({ jti: String(1000 + number) }));
    const ask = (target: string) => host.send({ method: 'GET', target, token });
    const measured: Record<string, Figures> = {};
    for (const [name, workload] of Object.entries(WORKLOADS)) {
      if (only && !only.includes(name)) continue;
      const prepared = (await workload.prepare?.(ask, USERS_THERE)) ?? '';
      let number = FIRST_NUMBER;
      const anyUser = () => number++;
      const next = workload.requests({ anyUser, token, freshTokens, begin: FIRST_NUMBER, prepared });
      measured[name] = await measure(host, next, workload.status);
    }
    return measured;
  } finally {
    await host.stop();
    await stop();
  }
}

const named = (wanted: string) => workloads.find(({ name }) => name === wanted) as Workload;

/** Reads come first, because what is written makes pages longer, and deletions last. */
const WORKLOADS: Readonly<Record<string, Workload>> = {
  health: named('health'),
  get: named('get'),
  'get, fresh token': named('fresh-token'),
  'list of 100': named('list'),
  'lookup by email': named('by-email'),
  'changes, at the head': named('changes'),
  create: named('create'),
  update: named('update'),
  'batch of 100': named('batch'),
  delete: {
    ...{ name: 'delete', title: 'delete', status: 204 },
    requests:
      ({ anyUser, token }) =>
      () => ({ method: 'DELETE', target: USERS + idOf(anyUser()), token }),
  },
};

/** Number of users in the table: each number is used once in each workload. */
const USERS_THERE = 1000;

/** All numbers have three digits, so that all requests of a workload have the same length. */
const FIRST_NUMBER = 500;

export type Measured = Readonly<Record<string, Figures>>;

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
const WARM_UP_REQUESTS = 40;

const BATCHES = 11;
const REQUESTS_PER_BATCH = 5;

const REQUESTS = WARM_UP_REQUESTS + 2 * BATCHES * REQUESTS_PER_BATCH;

/**
 * What the host does for one request of this kind: the median of some batches, since timers and what they do fall into a
 * few of them. Memory is looked at apart from promises, for to be counted they need some.
 */
async function measure(host: CountedHost, next: () => Request, wanted: number): Promise<Figures> {
  const send = async (count: number) => {
    for (let sent = 0; sent < count; sent += 1) {
      const request = next();
      const { status, body } = await host.send(request);
      if (status !== wanted) throw new Error(`${request.method} ${request.target} is ${status}: ${body}`);
    }
  };
  const batches = async (question: 'countPromises' | 'collectGarbage') => {
    const totals = [await host.ask(question)];
    for (let batch = 0; batch < BATCHES; batch += 1) {
      await send(REQUESTS_PER_BATCH);
      totals.push(await host.ask('totals'));
    }
    return totals;
  };
  await send(WARM_UP_REQUESTS);
  const counted = await batches('countPromises');
  const allocated = await batches('collectGarbage');
  const figures = FIGURES.map((figure) => [
    figure,
    figure === 'bytesAllocated' ? perRequest(allocated, 'heap') : perRequest(counted, figure),
  ]);
  return Object.fromEntries(figures);
}

function perRequest(totals: readonly Totals[], of: keyof Totals): number {
  const grown = totals.slice(1).map((total, batch) => total[of] - (totals[batch] as Totals)[of]);
  return Math.round(percentile(grown, 0.5) / REQUESTS_PER_BATCH);
}
