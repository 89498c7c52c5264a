import type { Outcome } from '../lab/load/impatient.ts';
import { panel } from '../lab/report/panel.ts';
import { svg, text } from '../lab/report/svg.ts';
import { type Row, shareOf } from './table.ts';

const COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd'];

const GOODPUT = { left: 70, right: 560, top: 50, bottom: 320 };

/** Goodput (solid) and refusals (dashed) over offered load, with the goal in grey. */
export function plotGoodput(goal: number, rows: readonly Row[]): string {
  const perPeak = ({ outcome, peak }: Row, count: number) => count / outcome.seconds / peak;
  const offered = (row: Row) => perPeak(row, row.outcome.due);
  const widest = Math.max(...rows.map(offered));
  const x = (value: number) => GOODPUT.left + ((GOODPUT.right - GOODPUT.left) * value) / widest;
  const groups = [...Map.groupBy(rows, ({ connections }) => connections)];
  const lines = groups.flatMap(([connections, own], index) => {
    const colour = COLOURS[index % COLOURS.length] as string;
    const over = (share: (row: Row) => number) => own.map((row) => [offered(row), 100 * share(row)] as const);
    const refused = over((row) => perPeak(row, row.outcome.refused));
    return [
      { title: `${connections} connections`, points: over(shareOf), colour },
      { title: `${connections}, 503`, points: refused, colour, dashes: '4 4' },
    ];
  });
  const ends = [0, widest].map((value) => [value, 100 * goal] as const);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    text(x(share * widest), GOODPUT.bottom + 18, (share * widest).toFixed(1), 'text-anchor="middle"'),
  );
  return svg(720, 370, 'Answered within a second (solid) and refused (dashed), % of the peak', [
    ...panel({
      ...GOODPUT,
      x,
      least: 100,
      lines: [...lines, { title: 'goal', points: ends, colour: '#bbbbbb' }],
    }),
    ...ticks,
    text(x(widest / 2), GOODPUT.bottom + 40, 'offered, in multiples of the peak', 'text-anchor="middle"'),
  ]);
}

/** The results of all ten callers of a load. */
type Turns = {
  readonly variant: string;
  readonly connections: number;
  readonly nine: readonly Outcome[];
  readonly tenth: Outcome;
};

const FAIRNESS = { left: 60, right: 560, height: 120, gap: 40, top: 60 };

/** A panel for each load, with a line for each caller: the percentage of success by second. */
export function plotFairness(rows: readonly Turns[]): string {
  const { left, right, height, gap } = FAIRNESS;
  const lineOf = ({ bySecond }: Outcome, colour: string, title?: string) => ({
    points: bySecond.map(
      ({ due, inTime }, second) =>
        [second / Math.max(bySecond.length - 1, 1), (100 * inTime) / Math.max(due, 1)] as const,
    ),
    ...{ colour, title },
  });
  const parts = rows.flatMap(({ variant, connections, nine, tenth }, index) => {
    const top = FAIRNESS.top + index * (height + gap);
    const lines = [
      ...nine.map((outcome, caller) => lineOf(outcome, '#1f77b4', caller === 0 ? 'the nine' : undefined)),
      lineOf(tenth, '#d62728', 'the tenth'),
    ];
    const x = (share: number) => left + (right - left) * share;
    return [
      text(left, top - 6, `${variant}, ${connections} connections`),
      ...panel({ left, right, top, bottom: top + height, x, least: 100, lines }),
    ];
  });
  const bottom = FAIRNESS.top + rows.length * (height + gap);
  return svg(720, bottom, 'Success within 1 s by second, in %', parts);
}
