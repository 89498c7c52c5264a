import { text } from './svg.ts';

/** A line of a panel, through these points. */
export type Line = {
  /** Beside the panel, if there is one. */
  readonly title?: string | undefined;
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly colour: string;
  /** As in `stroke-dasharray`. */
  readonly dashes?: string | undefined;
};

type Panel = {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** The place of a value of x. */
  readonly x: (value: number) => number;
  /** The largest value of y has at least this height. */
  readonly least: number;
  readonly lines: readonly Line[];
};

/** Lines over a grid with the values of y, which begin at 0. Their titles are to the right, below one another. */
export function panel({ left, right, top, bottom, x, least, lines }: Panel): string[] {
  const highest = Math.max(least, ...lines.flatMap(({ points }) => points.map(([, value]) => value))) * 1.05;
  const y = (value: number) => round(bottom - ((bottom - top) * value) / highest);
  const step = stepFor(highest);
  const titled = lines.filter(({ title }) => title !== undefined);
  const values = Array.from({ length: Math.floor(highest / step) + 1 }, (_, number) => number * step);
  return [
    ...values.flatMap((value) => [
      `<path d="M${left} ${y(value)}H${right}" stroke="#ddd"/>`,
      text(left - 8, y(value) + 4, String(Number(value.toPrecision(6))), 'text-anchor="end"'),
    ]),
    ...lines.map(({ points, colour, dashes = 'none' }) => {
      const places = points.map(([value, height]) => `${round(x(value))},${y(height)}`);
      return `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="1.5" stroke-dasharray="${dashes}"/>`;
    }),
    ...titled.flatMap(({ title = '', colour }, index) => {
      const line = top + 6 + index * 20;
      const mark = `<rect x="${right + 12}" y="${line}" width="10" height="10" fill="${colour}"/>`;
      return [mark, text(right + 28, line + 9, title)];
    }),
  ];
}

/** A round step that gives three to seven lines. */
function stepFor(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(highest / 3));
  return [5, 2, 1].map((times) => times * power).find((step) => highest / step >= 3) ?? power;
}

/** One digit after the point is enough for a place. */
export const round = (value: number) => Math.round(value * 10) / 10;
