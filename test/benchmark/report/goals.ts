import { type Spread, spreadOf } from '../../lab/meters/percentile.ts';
import { aligned } from '../../lab/report/table.ts';
import type { Results, Run } from '../rounds.ts';
import type { StartRow } from './summary.ts';

type Figure = (run: Run) => number | null;
type Place = { readonly target: string; readonly workload: string; readonly figure: Figure };

/** A figure that is at most (or at least) so many times another one of the same round; without a limit it is only reported. */
type Goal = {
  readonly title: string;
  readonly of: Place;
  readonly to: Place;
  /** The difference counts, in CPU seconds per 1,000 requests, in place of the ratio. */
  readonly isDifference?: boolean;
  readonly atLeast?: number;
  readonly atMost?: number;
};

/** What a start, and the memory, may cost at most. */
const LIMITS = [
  ['start to first 200, ms', 160, (row: StartRow) => row.milliseconds],
  ['memory at rest, MB', 80, (row: StartRow) => row.memoryAtRest],
  ['memory under load, MB', 160, (row: StartRow) => row.memoryUnderLoad],
] as const;

const server: Figure = (run) => run.server;
const postgres: Figure = (run) => run.postgres;
const both: Figure = (run) => (run.server ?? 0) + run.postgres;
const throughput: Figure = (run) => run.requestsPerSecond;
const p99: Figure = (run) => run.p99;

const ours = (workload: string, figure: Figure, target = 'ours'): Place => ({ target, workload, figure });

const beside = (
  target: string,
  workload: string,
  what: string,
  figure: Figure,
  limit: { readonly atMost: number } | { readonly atLeast: number },
): Goal => ({
  title: `${workload}: ${what} to ${target}`,
  of: ours(workload, figure),
  to: ours(workload, figure, target),
  ...limit,
});

const goals: readonly Goal[] = [
  ...['go', 'bun'].flatMap((peer) => [
    beside(peer, 'get', 'server', server, { atMost: 1 }),
    beside(peer, 'get', 'server and PostgreSQL', both, { atMost: 0.7 }),
    beside(peer, 'get', 'requests/s', throughput, { atLeast: 1 }),
  ]),
  beside('hello', 'get', 'server', server, { atMost: 1.75 }),
  beside('hello', 'get', 'requests/s', throughput, { atLeast: 0.55 }),
  beside('fastify', 'get', 'server', server, { atMost: 0.25 }),
  beside('fastify-all', 'get', 'server', server, { atMost: 0.6 }),
  ...['create', 'update'].flatMap((workload) => [
    beside('go', workload, 'server', server, { atMost: 1 }),
    beside('go', workload, 'PostgreSQL', postgres, { atMost: 1 }),
    beside('fastify-all', workload, 'server', server, { atMost: 0.65 }),
  ]),
  ...(
    [
      ['server', server],
      ['PostgreSQL', postgres],
    ] as const
  ).flatMap(([what, figure]) => [
    {
      title: `batch of 100: ${what} to one create that comes alone`,
      of: ours('batch', figure),
      to: ours('create-alone', figure),
      atMost: 100 / 8,
    },
    // Creates that come together are one statement, as a batch is: no way to insert 100 rows takes an eighth of theirs.
    {
      title: `batch of 100: ${what} to one of many creates at once`,
      of: ours('batch', figure),
      to: ours('create', figure),
    },
  ]),
  beside('go', 'list', 'server', server, { atMost: 1 }),
  beside('bun', 'fresh-token', 'server', server, { atMost: 1 }),
  beside('hello', 'health', 'server', server, { atMost: 1.2 }),
  beside('go', 'get-half', 'p99', p99, { atMost: 1.5 }),
  ...(
    [
      ['ours-traced-1', 0.006],
      ['ours-traced-all', 0.015],
    ] as const
  ).map(([target, atMost]) => ({
    title: `get: server of ${target} less that of ours, s/1,000`,
    of: ours('get', server, target),
    to: ours('get', server),
    isDifference: true,
    atMost,
  })),
];

/** How each goal of this project stands, as far as it was measured: the middle of the rounds decides. */
export function goalTableOf({ runs }: Results, starts: readonly StartRow[]): string {
  const own = starts.find(({ target }) => target === 'ours');
  const lines = [
    ...goals.map((goal) => lineOf(goal.title, reachedBy(goal, runs), goal)),
    ...LIMITS.map(([title, atMost, figure]) => lineOf(title, own && figure(own), { atMost })),
  ];
  return aligned([['goal', '', 'measured', ''], ...lines.filter((line) => line !== undefined)]);
}

function reachedBy({ of, to, isDifference }: Goal, runs: readonly Run[]): Spread | undefined {
  const at = ({ target, workload, figure }: Place, round: number) => {
    const run = runs.find((one) => one.round === round && one.target === target && one.workload === workload);
    return run ? figure(run) : null;
  };
  const rounds = [...new Set(runs.map(({ round }) => round))];
  return spreadOf(
    rounds.map((round) => {
      const [mine, theirs] = [at(of, round), at(to, round)];
      if (mine === null || theirs === null) return null;
      return isDifference ? mine - theirs : mine / theirs;
    }),
  );
}

function lineOf(
  title: string,
  measured: Spread | undefined,
  { atLeast, atMost }: Omit<Goal, 'title' | 'of' | 'to'>,
) {
  if (!measured) return undefined;
  const { median } = measured;
  const figure = median < 100 ? median.toPrecision(3) : median.toFixed(0);
  if (atLeast === undefined && atMost === undefined) return [title, 'no limit', figure, ''];
  const isReached =
    median >= (atLeast ?? Number.NEGATIVE_INFINITY) && median <= (atMost ?? Number.POSITIVE_INFINITY);
  const limit = atMost === undefined ? `at least ${atLeast}` : `at most ${atMost}`;
  return [title, limit, figure, isReached ? 'reached' : 'missed'];
}
