import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, type Outcome, PATIENCE_MS, startLoadProcess, TOKEN } from '../lab/load/load.ts';
import { USERS, wireOf } from '../lab/load/wire.ts';
import { medianOf } from '../lab/meters/percentile.ts';
import { markdownTable } from '../lab/report/table.ts';
import { makeUpTokens } from '../stage/forge.ts';
import { type ProbeOutcome, startProbes } from './probes.ts';
import type { LoadedService } from './service.ts';
import { aSecond, goodputOf, sumOf } from './table.ts';

/**
 * Ten callers, nine of which send 5 % of the peak each at an open rate, each with tokens of its own that it renews. The
 * tenth sends as much as its connections carry.
 */
type FairOptions = {
  readonly service: LoadedService;
  readonly connections: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
  readonly measurePeak: () => Promise<number>;
  readonly print: (line: string) => void;
  readonly printRow: (figure: string, goal: string) => void;
};

/** They cost many times what a read does, so fewer requests are the peak. */
const PAGES = { success: [0.99, 0.95], p99: [1000, 1000], total: [0, 0] } as const;

/** What the tenth sends, and the limits of the rule by its connections. With a path, it reads that with its own token. */
const VARIANTS = {
  'its own token': { success: [0.99, 0.99], p99: [250, 500], total: [0.8, 0.7] },
  'made-up tokens': { success: [0.99, 0.95], p99: [250, 1000], total: [0, 0] },
  'no token': { success: [0.99, 0.95], p99: [250, 1000], total: [0, 0] },
  'pages of 100 users': { ...PAGES, path: '' },
  'pages of 1,000 users': { ...PAGES, path: '?limit=1000' },
  'pages of changes': { ...PAGES, path: 'changes?limit=1000' },
} as const;

type Variant = keyof typeof VARIANTS;

type FairRow = {
  readonly variant: Variant;
  readonly connections: number;
  readonly peak: number;
  readonly nine: readonly Outcome[];
  readonly tenth: Outcome;
  readonly probes: ProbeOutcome;
};

const NINE = 9;
/** More than each of the nine needs: 2,000 requests a second that take 5 ms each occupy ten. */
const CONNECTIONS_OF_NINE = 64;
const SHARE_OF_PEAK = 1 / 20;
const RENEW_AFTER_S = 10;
/** The nine send before the tenth begins, and after it has ended. */
const AROUND_S = 2;
const MADE_UP_TOKENS = 500;

/** Prints a line for each load, and which figures of the rule its medians exceed. Returns whether all are kept. */
export async function isFair(options: FairOptions): Promise<boolean> {
  const { service, connections, seconds, rounds, measurePeak, print, printRow } = options;
  const port = Number(new URL(service.url).port);
  print(TABLE.head);
  const rows: FairRow[] = [];
  // A process that starts takes a core from the others for half a second.
  const [ofNine, ofTenth] = [startLoadProcess(), startLoadProcess()];
  await Promise.all([ofNine.run(), ofTenth.run()]);
  let peak = await measurePeak();
  for (const variant of Array.from({ length: rounds }, () => Object.keys(VARIANTS) as Variant[]).flat()) {
    for (const count of connections) {
      const jobs = await Promise.all(Array.from({ length: NINE }, (_, index) => quiet(index, peak)));
      const job = await loud(variant, count);
      const probes = startProbes(service.url);
      const nine = ofNine.run(...jobs);
      await sleep(1000 * AROUND_S);
      const [tenth] = await ofTenth.run(job);
      const outcomes = { nine: await nine, tenth: tenth as Outcome, probes: await probes.stop() };
      const next = await measurePeak();
      const row = { variant, connections: count, ...outcomes, peak: (peak + next) / 2 };
      peak = next;
      rows.push(row);
      print(TABLE.line(row));
    }
  }
  const sameLoad = Map.groupBy(rows, (row) => `${row.variant}, ${row.connections} connections`);
  const faults = [...sameLoad].flatMap(([load, same]) => faultsOf(load, same));
  for (const fault of faults) print(`FAILED: ${fault}`);
  printRow(`${sameLoad.size} loads, ${faults.length} figures outside of their limits`, '0');
  return faults.length === 0;

  async function quiet(index: number, ofPeak: number): Promise<Job> {
    const rate = Math.round(ofPeak * SHARE_OF_PEAK);
    const duration = seconds + 2 * AROUND_S;
    const count = Math.ceil(duration / RENEW_AFTER_S) + 1;
    const tokens = await Promise.all(
      Array.from({ length: count }, (_, number) => service.sign({ sub: `quiet-${index}`, jti: `${number}` })),
    );
    const list = service.requestsOf(index);
    return {
      port,
      requests: { list, tokens, renewAfter: RENEW_AFTER_S },
      patienceMs: PATIENCE_MS,
      connections: CONNECTIONS_OF_NINE,
      rate,
      queues: true,
      seconds: duration,
    };
  }

  async function loud(variant: Variant, count: number): Promise<Job> {
    const job = { port, patienceMs: PATIENCE_MS, connections: count, seconds };
    const list = service.requestsOf(NINE);
    if (variant === 'no token') return { ...job, requests: { list: list.map(withoutToken) } };
    const token = await service.sign({ sub: 'loud' });
    const limits = VARIANTS[variant];
    if ('path' in limits) {
      const page = wireOf({ method: 'GET', target: USERS + limits.path, token: TOKEN });
      return { ...job, requests: { list: [page], tokens: [token] } };
    }
    if (variant === 'its own token') return { ...job, requests: { list, tokens: [token] } };
    return { ...job, requests: { list, tokens: makeUpTokens(token, MADE_UP_TOKENS), renewAfter: 0 } };
  }
}

const withoutToken = (request: string): string => request.replace(/Authorization: .*\r\n/, '');

const shareInTime = ({ answered, due }: Outcome): number => answered / Math.max(due, 1);

const worstShare = ({ nine }: FairRow): number => Math.min(...nine.map(shareInTime));

const worstP99 = ({ nine }: FairRow): number =>
  Math.round(Math.max(...nine.map(({ responseLatency }) => responseLatency.p99)));

const totalOf = ({ nine, tenth, peak }: FairRow): number => sumOf([...nine, tenth].map(goodputOf)) / peak;

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

const TABLE = markdownTable<FairRow>({
  'the tenth sends': ({ variant }) => variant,
  connections: ({ connections }) => connections,
  'the nine: within 1 s, the worst': (row) => percent(worstShare(row)),
  'p99, the worst': (row) => `${worstP99(row)} ms`,
  each: ({ nine }) => nine.map((outcome) => (100 * shareInTime(outcome)).toFixed(0)).join(' '),
  'the tenth/s': ({ tenth }) => aSecond(tenth, tenth.sent),
  'of it 503/s': ({ tenth }) => aSecond(tenth, tenth.refused),
  'the peak': ({ peak }) => Math.round(peak),
  'all successes': (row) => percent(totalOf(row)),
  '/health, /ready': ({ probes }) => `${probes.longestHealth}, ${probes.longestReady} ms`,
});

/** Which limits the medians of these rows, of one load, exceed. */
function faultsOf(load: string, rows: readonly FairRow[]): string[] {
  const { variant, connections } = rows[0] as FairRow;
  const column = connections > 200 ? 1 : 0;
  const limits = VARIANTS[variant];
  const success = medianOf(rows.map(worstShare));
  const p99 = medianOf(rows.map(worstP99));
  const total = medianOf(rows.map(totalOf));
  return [
    success < limits.success[column] &&
      `${percent(success)} of one of the nine's requests succeed within 1 s`,
    p99 > limits.p99[column] && `the p99 of one of the nine is ${p99} ms`,
    total < limits.total[column] && `all successes together are ${percent(total)} of the peak`,
  ]
    .filter((fault) => fault !== false)
    .map((fault) => `${load}: ${fault}.`);
}
