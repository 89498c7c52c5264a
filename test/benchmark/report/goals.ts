import { type Spread, spreadOf } from '../../lab/meters/percentile.ts';
import { aligned } from '../../lab/report/table.ts';
import type { Results, Run } from '../rounds.ts';
import type { StartRow } from './summary.ts';

type Figure = (run: Run) => number | null;
type Place = { readonly target: string; readonly workload: string; readonly figure: Figure };

/** A figure that is at most so many times another one of the same round. */
type Goal = {
  readonly title: string;
  readonly of: Place;
  readonly to: Place;
  /** The difference counts, in CPU seconds per 1,000 requests, in place of the ratio. */
  readonly isDifference?: boolean;
  readonly atMost: number;
};

const server: Figure = (run) => run.server;
const both: Figure = (run) => (run.server ?? 0) + run.postgres;

const FIGURES = {
  server,
  PostgreSQL: (run: Run) => run.postgres,
  'server and PostgreSQL': both,
  p99: (run: Run) => run.p99,
};

const ours = (workload: string, figure: Figure, target = 'ours'): Place => ({ target, workload, figure });

const beside = (target: string, workload: string, what: keyof typeof FIGURES, atMost: number): Goal => ({
  title: `${workload}: ${what} to ${target}`,
  of: ours(workload, FIGURES[what]),
  to: ours(workload, FIGURES[what], target),
  atMost,
});

const goals: readonly Goal[] = [
  beside('go', 'get', 'server', 1.25),
  ...['go', 'bun'].map((peer) => beside(peer, 'get', 'server and PostgreSQL', 0.75)),
  ...['create', 'update'].flatMap((workload) => [
    beside('go', workload, 'server and PostgreSQL', 0.65),
    beside('bun', workload, 'server and PostgreSQL', 0.75),
    beside('go', workload, 'PostgreSQL', 0.4),
  ]),
  {
    title: 'batch of 100: server and PostgreSQL to one create that comes alone',
    of: ours('batch', both),
    to: ours('create-alone', both),
    atMost: 7.14, // 100 creates cost at least 14 times as much.
  },
  ...['go', 'bun'].map((peer) => beside(peer, 'list', 'server and PostgreSQL', 0.6)),
  {
    title: 'by-email: server and PostgreSQL to get',
    of: ours('by-email', both),
    to: ours('get', both),
    atMost: 1.3,
  },
  beside('fastify', 'fresh-token', 'server and PostgreSQL', 1),
  beside('hello', 'health', 'server', 1.3),
  beside('go', 'get-half', 'p99', 1.5),
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

/** What a start, and the memory, may cost at most. Batches need more memory than all other requests. */
const limitsOf = (hasBatches: boolean) =>
  [
    ['start to first 200, ms', 160, (row: StartRow) => row.milliseconds],
    ['memory at rest, MB', 80, (row: StartRow) => row.memoryAtRest],
    ['memory under load, MB', hasBatches ? 270 : 160, (row: StartRow) => row.memoryUnderLoad],
  ] as const;

/** How each goal of this project stands, as far as it was measured: the middle of the rounds decides. */
export function goalTableOf({ runs }: Results, starts: readonly StartRow[]): string {
  const own = starts.find(({ target }) => target === 'ours');
  const limits = limitsOf(runs.some(({ workload }) => workload === 'batch'));
  const lines = [
    ...goals.map((goal) => lineOf(goal.title, reachedBy(goal, runs), goal.atMost)),
    ...limits.map(([title, atMost, figure]) => lineOf(title, own && figure(own), atMost)),
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

function lineOf(title: string, measured: Spread | undefined, atMost: number) {
  if (!measured) return undefined;
  const { median } = measured;
  const figure = median < 100 ? median.toPrecision(3) : median.toFixed(0);
  return [title, `at most ${atMost}`, figure, median <= atMost ? 'reached' : 'missed'];
}
