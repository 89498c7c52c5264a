import { percentile } from '../../lab/meters/percentile.ts';
import type { CountedHost } from './counted-host.ts';
import type { Totals } from './counters.ts';
import type { Request } from './requests.ts';

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
export const REQUESTS = WARM_UP + 2 * BATCHES * REQUESTS_A_BATCH;

/**
 * What the host does for one request of this kind: the median of some batches, since timers and what they do fall into a
 * few of them. Memory is looked at apart from promises, for to be counted they need some.
 */
export async function measure(host: CountedHost, requestAt: (index: number) => Request): Promise<Figures> {
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
