import type { Outcome } from '../lab/load/load.ts';
import { markdownTable } from '../lab/report/table.ts';
import type { ProbeOutcome } from './probes.ts';

export type Row = {
  readonly connections: number;
  /** The offered load, in multiples of the capacity. */
  readonly factor: number;
  /** Requests answered a second from few connections, as measured right before this load and right after it, on average. */
  readonly peak: number;
  readonly outcome: Outcome;
  readonly probes: ProbeOutcome;
  /** CPU seconds of the service a second. */
  readonly cpu: number;
  /** Whether everything was answered two seconds later. */
  readonly isNormalAfter: boolean;
};

export const TABLE = markdownTable<Row>({
  connections: ({ connections }) => connections,
  load: ({ factor }) => `${factor} x`,
  'offered/s': ({ outcome }) => aSecond(outcome, outcome.due),
  'sent/s': ({ outcome }) => aSecond(outcome, outcome.sent),
  'goodput/s': ({ outcome }) => aSecond(outcome, outcome.answered),
  'the peak': ({ peak }) => Math.round(peak),
  'of the peak': (row) => `${Math.round(100 * shareOf([row]))} %`,
  'answered p50, p99': ({ outcome: { responseLatency } }) => inMilliseconds(responseLatency),
  'refused/s': ({ outcome }) => aSecond(outcome, outcome.refused),
  'p50, p99': ({ outcome: { refusalLatency } }) => inMilliseconds(refusalLatency),
  'given up/s': ({ outcome }) => aSecond(outcome, outcome.givenUp),
  'late, broken, other': ({ outcome: { late, broken, other } }) => `${late}, ${broken}, ${other}`,
  '/health, /ready': ({ probes: { longestHealth, longestReady } }) => `${longestHealth}, ${longestReady} ms`,
  CPU: ({ cpu }) => cpu.toFixed(2),
  '2 s after': ({ isNormalAfter }) => (isNormalAfter ? 'normal' : 'NOT NORMAL'),
});

/** Answered in time, a second. */
export const goodputOf = (outcome: Outcome): number => outcome.answered / outcome.seconds;

/** The share of the peak that is served by rounds of one load. What was not offered cannot be served. */
export function shareOf(rounds: readonly Row[]): number {
  const possible = rounds.map(({ outcome, peak }) => Math.min(peak, outcome.due / outcome.seconds));
  return sumOf(rounds.map(({ outcome }) => goodputOf(outcome))) / sumOf(possible);
}

export const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** Rows of the same load, in the order of the first of each. */
export const loadsOf = (rows: readonly Row[]): readonly Row[][] => [
  ...Map.groupBy(rows, ({ connections, factor }) => `${connections} ${factor}`).values(),
];

const inMilliseconds = ({ p50, p99 }: Outcome['responseLatency']) =>
  `${Math.round(p50)}, ${Math.round(p99)} ms`;

export const aSecond = ({ seconds }: Outcome, count: number): number => Math.round(count / seconds);
