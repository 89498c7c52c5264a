import { type Spread, spreadOf } from '../../lab/meters/percentile.ts';
import { aligned } from '../../lab/report/table.ts';
import type { Results, Run } from '../rounds.ts';
import { both, comparedAt, type Figure, memoryUnderLoad, type Place } from './summary.ts';

/** A figure, as far as it was measured, and its limit. The median of the rounds decides. */
export type Goal = { readonly title: string; readonly measured: Spread | undefined; readonly atMost: number };

const FIGURES = {
  server: ({ server }: Run) => server,
  PostgreSQL: ({ postgres }: Run) => postgres,
  'server and PostgreSQL': both,
  p99: ({ p99 }: Run) => p99,
};

type FigureName = keyof typeof FIGURES;

const at = (target: string, workload: string, figure: Figure): Place => ({ target, workload, figure });

/** The goals of `npm run bench` that compare the service with a peer, or with itself. */
export function benchGoals({ runs }: Results): readonly Goal[] {
  const beside = (target: string, workload: string, name: FigureName, atMost: number): Goal => {
    const [mine, theirs] = ['ours', target].map((one) => at(one, workload, FIGURES[name])) as [Place, Place];
    return { title: `${workload}: ${name} to ${target}`, measured: comparedAt(runs, mine, theirs), atMost };
  };
  const within = (workload: string, to: string, atMost: number): Goal => ({
    title: `${workload}: server and PostgreSQL to ${to}`,
    measured: comparedAt(runs, at('ours', workload, both), at('ours', to, both)),
    atMost,
  });
  const added = (target: string, atMost: number): Goal => ({
    title: `get: server of ${target} less that of ours, s/1,000`,
    measured: comparedAt(
      runs,
      at(target, 'get', FIGURES.server),
      at('ours', 'get', FIGURES.server),
      (mine, theirs) => mine - theirs,
    ),
    atMost,
  });
  return [
    beside('go', 'get', 'server', 1.25),
    ...['go', 'bun'].map((peer) => beside(peer, 'get', 'server and PostgreSQL', 0.75)),
    ...['create', 'update'].flatMap((workload) => [
      beside('go', workload, 'server and PostgreSQL', 0.65),
      beside('bun', workload, 'server and PostgreSQL', 0.75),
      beside('go', workload, 'PostgreSQL', 0.4),
    ]),
    // 100 creates that come alone cost at least 14 times as much as a batch of 100.
    within('batch', 'create-alone', 100 / 14),
    ...['go', 'bun'].map((peer) => beside(peer, 'list', 'server and PostgreSQL', 0.6)),
    within('by-email', 'get', 1.3),
    within('by-external-id', 'get', 1.3),
    beside('fastify', 'fresh-token', 'server and PostgreSQL', 1),
    beside('hello', 'health', 'server', 1.3),
    beside('go', 'get-half', 'p99', 1.5),
    added('ours-traced-1', 0.006),
    added('ours-traced-all', 0.015),
  ];
}

/** The goals of start and memory. Batches need more memory than all other requests. */
export function memoryGoals({ starts, runs }: Results): readonly Goal[] {
  const own = starts.filter(({ target }) => target === 'ours');
  const hasBatches = runs.some(({ workload }) => workload === 'batch');
  return [
    {
      title: 'start to first 200, ms',
      measured: spreadOf(own.map(({ milliseconds }) => milliseconds)),
      atMost: 160,
    },
    {
      title: 'memory at rest, MB',
      measured: spreadOf(own.map(({ memoryAtRest }) => memoryAtRest)),
      atMost: 80,
    },
    {
      title: 'memory under load, MB',
      measured: memoryUnderLoad(runs, 'ours'),
      atMost: hasBatches ? 270 : 160,
    },
  ];
}

/** The growth of PostgreSQL's CPU time from the first target to the last one, and the cost of the last page there. */
export function growthGoals({ runs }: Results, first: string, last: string): readonly Goal[] {
  const limits = { create: 1.25, 'by-email': 1.25, 'deep-list': 1.25, get: 1.6, update: 1.6 };
  const postgresAt = (target: string, workload: string) => at(target, workload, FIGURES.PostgreSQL);
  return [
    ...Object.entries(limits).map(([workload, atMost]) => ({
      title: `${workload}: PostgreSQL with the most users to the fewest`,
      measured: comparedAt(runs, postgresAt(last, workload), postgresAt(first, workload)),
      atMost,
    })),
    {
      title: 'deep-list: server and PostgreSQL to list, with the most users',
      measured: comparedAt(runs, at(last, 'deep-list', both), at(last, 'list', both)),
      atMost: 1.25,
    },
  ];
}

/** Whether a goal was reached; undefined if it was not measured. */
export const isReached = ({ measured, atMost }: Goal): boolean | undefined =>
  measured && measured.median <= atMost;

/** How many goals were reached, and which were missed, in a line. */
export function summaryOf(goals: readonly Goal[]): string {
  const measured = goals.filter((goal) => goal.measured);
  const missed = measured.filter((goal) => !isReached(goal));
  const lines = missed.map(({ title, measured }) => `${title} ${measured && plain(measured.median)}`);
  return [`${measured.length - missed.length} of ${measured.length} goals`, ...lines].join('; ');
}

/** The goals that were measured. */
export function goalTable(goals: readonly Goal[]): string {
  const lines = goals.flatMap((goal) => {
    if (!goal.measured) return [];
    const limit = `at most ${Number(goal.atMost.toPrecision(3))}`;
    return [[goal.title, limit, plain(goal.measured.median), isReached(goal) ? 'reached' : 'missed']];
  });
  return aligned([['goal', '', 'measured', ''], ...lines]);
}

const plain = (value: number) => (value < 100 ? value.toPrecision(3) : value.toFixed(0));
