import { loadsOf, type Row, shareOf, sumOf } from './table.ts';

/** The share of the peak that must be served. */
const GOAL_SHARE = 0.8;

type Limit = {
  readonly sentence: string;
  /** Whether the run fails by it; otherwise it is only reported. */
  readonly decides: boolean;
  isKept(rounds: readonly Row[]): boolean;
  /** What is reported for a load that has not kept it. */
  figure(rounds: readonly Row[]): string;
};

export const LIMITS: readonly Limit[] = [
  {
    sentence: `Goodput is at least ${100 * GOAL_SHARE} % of the peak`,
    decides: true,
    isKept: (rounds) => shareOf(rounds) >= GOAL_SHARE,
    figure: (rounds) => `${(100 * shareOf(rounds)).toFixed(1)} %`,
  },
  {
    sentence: 'All is normal two seconds after',
    decides: true,
    isKept: (rounds) => rounds.every(({ isNormalAfter }) => isNormalAfter),
    figure: () => 'not normal',
  },
  {
    sentence: 'Every probe is answered 200',
    decides: true,
    isKept: (rounds) => probesOf(rounds, 'failed') === 0,
    figure: (rounds) => `${probesOf(rounds, 'failed')} of ${probesOf(rounds, 'asked')} not`,
  },
  withinMs(1000, '/ready is answered within 1,000 ms', true, ({ probes }) => probes.longestReady),
  // Many connections that are opened at the same moment are accepted one in each pass of the event loop, and a probe among them.
  withinMs(100, '/health is answered within 100 ms', false, ({ probes }) => probes.longestHealth),
  withinMs(100, '99 of 100 refusals come within 100 ms', false, ({ outcome }) => outcome.refusalLatency.p99),
];

function withinMs(limit: number, sentence: string, decides: boolean, taken: (row: Row) => number): Limit {
  const longest = (rounds: readonly Row[]) => Math.max(...rounds.map(taken));
  const figure = (rounds: readonly Row[]) => `${Math.round(longest(rounds))} ms`;
  return { sentence, decides, isKept: (rounds) => longest(rounds) <= limit, figure };
}

const probesOf = (rounds: readonly Row[], kind: 'asked' | 'failed') =>
  sumOf(rounds.map(({ probes }) => probes[kind]));

export const brokenBy = ({ isKept }: Limit, rows: readonly Row[]): readonly Row[][] =>
  loadsOf(rows).filter((rounds) => !isKept(rounds));

/** A line that names the loads that have not kept it, with their figures. */
export function verdictOn(limit: Limit, rows: readonly Row[]): string {
  const broken = brokenBy(limit, rows).map((rounds) => {
    const [{ connections, factor }] = rounds as [Row];
    return `${connections} connections, ${factor} x: ${limit.figure(rounds)}`;
  });
  if (broken.length === 0) return `kept: ${limit.sentence}.`;
  const weight = limit.decides ? 'FAILED' : 'not kept, which decides nothing';
  return `${weight}: ${limit.sentence}: ${broken.join('; ')}.`;
}
