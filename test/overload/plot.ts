import { svg, text } from '../lab/report/svg.ts';

/** A measurement, in multiples of the peak. */
type Point = {
  readonly connections: number;
  readonly offered: number;
  readonly goodput: number;
  readonly refused: number;
};

const TITLE = 'Answered within a second (solid) and refused (dashed), % of the peak';
const WIDTH = 720;
const HEIGHT = 360;
const MARGIN = { left: 70, right: 170, top: 30, bottom: 50 };
const COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd'];

/** Goodput (lines) and refusals (dashed) over offered load, as an SVG; the grey line is the goal. */
export function plot(goal: number, points: readonly Point[]): string {
  const largest = Math.max(1, ...points.flatMap(({ goodput, refused }) => [goodput, refused]));
  const widest = Math.max(...points.map(({ offered }) => offered));
  const x = (value: number) => MARGIN.left + (value / widest) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value: number) =>
    HEIGHT - MARGIN.bottom - (value / largest) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const path = (values: readonly (readonly [number, number])[], more: string) =>
    `<polyline fill="none" stroke-width="2" ${more} points="${values.map(([a, b]) => `${x(a)},${y(b)}`).join(' ')}"/>`;

  const groups = [...Map.groupBy(points, ({ connections }) => connections)];
  const lines = groups.flatMap(([connections, ofGroup], index) => {
    const stroke = `stroke="${COLOURS[index % COLOURS.length]}"`;
    return [
      path(
        ofGroup.map(({ offered, goodput }) => [offered, goodput]),
        stroke,
      ),
      path(
        ofGroup.map(({ offered, refused }) => [offered, refused]),
        `${stroke} stroke-dasharray="4 4"`,
      ),
      text(
        WIDTH - MARGIN.right + 10,
        MARGIN.top + 20 + 20 * index,
        `${connections} connections`,
        `style="fill:${COLOURS[index % COLOURS.length]}"`,
      ),
    ];
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    text(
      x(share * widest),
      HEIGHT - MARGIN.bottom + 18,
      `${(share * widest).toFixed(1)}`,
      'text-anchor="middle"',
    ),
    text(
      MARGIN.left - 8,
      y(share * largest) + 4,
      `${Math.round(100 * share * largest)} %`,
      'text-anchor="end"',
    ),
  ]);
  return svg(WIDTH, HEIGHT, TITLE, [
    path(
      [
        [0, goal],
        [widest, goal],
      ],
      'stroke="#bbbbbb"',
    ),
    ...lines,
    ...ticks,
    text(x(widest / 2), HEIGHT - 10, 'offered, in multiples of the peak', 'text-anchor="middle"'),
    text(WIDTH - MARGIN.right + 10, y(goal) + 4, 'goal'),
  ]);
}
