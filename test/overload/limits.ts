import { type Row, shareOf } from './table.ts';

/** The share of the peak that must be served. */
const GOAL_SHARE = 0.8;

type Limit = {
  readonly sentence: string;
  /** Whether the run fails by it; otherwise it is only reported. */
  readonly decides: boolean;
  isKept(row: Row): boolean;
  /** What is reported for a load that has not kept it. */
  figure(row: Row): string;
};

export const LIMITS: readonly Limit[] = [
  {
    sentence: `Goodput is at least ${100 * GOAL_SHARE} % of the peak`,
    decides: true,
    isKept: (row) => shareOf(row) >= GOAL_SHARE,
    figure: (row) => `${(100 * shareOf(row)).toFixed(1)} %`,
  },
  {
    sentence: 'All is normal two seconds after',
    decides: true,
    isKept: ({ isNormalAfter }) => isNormalAfter,
    figure: () => 'not normal',
  },
  {
    sentence: 'Every probe is answered 200',
    decides: true,
    isKept: ({ probes }) => probes.failed === 0,
    figure: ({ probes }) => `${probes.failed} of ${probes.asked} not`,
  },
  withinMs(1000, '/ready is answered within 1,000 ms', true, ({ probes }) => probes.longestReady),
  // Many connections that are opened at the same moment are accepted one in each pass of the event loop, and a probe among them.
  withinMs(100, '/health is answered within 100 ms', false, ({ probes }) => probes.longestHealth),
  withinMs(100, '99 of 100 refusals come within 100 ms', false, ({ outcome }) => outcome.refusalLatency.p99),
];

function withinMs(limit: number, sentence: string, decides: boolean, taken: (row: Row) => number): Limit {
  const figure = (row: Row) => `${Math.round(taken(row))} ms`;
  return { sentence, decides, isKept: (row) => taken(row) <= limit, figure };
}

export const brokenBy = ({ isKept }: Limit, rows: readonly Row[]): readonly Row[] =>
  rows.filter((row) => !isKept(row));

/** A line that names the loads that have not kept it, with their figures. */
export function verdictOn(limit: Limit, rows: readonly Row[]): string {
  const broken = brokenBy(limit, rows).map(
    (row) => `${row.connections} connections, ${row.factor} x: ${limit.figure(row)}`,
  );
  if (broken.length === 0) return `kept: ${limit.sentence}.`;
  const weight = limit.decides ? 'FAILED' : 'not kept, which decides nothing';
  return `${weight}: ${limit.sentence}: ${broken.join('; ')}.`;
}
