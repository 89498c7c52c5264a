import { svg, text } from '../../lab/report/svg.ts';
import type { Row } from './summary.ts';

const WIDTH = 860;
const NAMES = 210;
const BAR = 14;
const GAP = 6;
const LONGEST = WIDTH - NAMES - 130;

/** Bars longer than so many times the first one are cut off, so that the others can be distinguished. */
const CUT_OFF = 3;

const COLOURS = { server: '#3b6ea5', postgres: '#b5c7d9', whisker: '#222' };

/** The sum of a row's two bars. */
const total = (row: Row) => row.both?.median ?? 0;

/** Bars of CPU per 1,000 requests, a panel a workload: the server's, PostgreSQL's, and a whisker from least to greatest. */
export function chartOf(
  rows: readonly Row[],
  titles: { readonly target: (name: string) => string; readonly workload: (name: string) => string },
): string {
  const panels: string[] = [];
  let y = 50;
  for (const [workload, own] of Map.groupBy(rows, (row) => row.workload)) {
    panels.push(text(10, y + 12, titles.workload(workload), 'font-weight="bold"'));
    y += 24;
    const scale = LONGEST / scaleEnd(own);
    for (const row of own) {
      panels.push(barOf(row, y, scale, titles.target(row.target)));
      y += BAR + GAP;
    }
    y += 16;
  }
  return svg(WIDTH, y, 'CPU seconds per 1,000 requests', [
    rectangle(10, 30, 10, COLOURS.server),
    text(24, 40, "the server's process"),
    rectangle(170, 30, 10, COLOURS.postgres),
    text(184, 40, "all of PostgreSQL's processes; middle of the rounds, least to greatest of the sum"),
    ...panels,
  ]);
}

/** The value at the end of the longest bar. */
function scaleEnd(rows: readonly Row[]): number {
  const [first] = rows;
  const largest = Math.max(...rows.map((row) => row.both?.max ?? 0));
  return (first ? Math.min(largest, CUT_OFF * total(first)) : largest) || 1;
}

function barOf(row: Row, y: number, scale: number, title: string): string {
  const place = (value: number) => NAMES + Math.min(value * scale, LONGEST);
  const { min = 0, max = 0 } = row.both ?? {};
  const line = y + BAR / 2;
  const [begin, middle, end] = [place(0), place(row.server?.median ?? 0), place(total(row))];
  const whisker = `M${place(min)} ${line - 3}v6M${place(min)} ${line}H${place(max)}M${place(max)} ${line - 3}v6`;
  const isCutOff = max * scale > LONGEST;
  return [
    text(NAMES - 8, y + BAR - 3, title, 'text-anchor="end"'),
    rectangle(begin, y, middle - begin, COLOURS.server),
    rectangle(middle, y, end - middle, COLOURS.postgres),
    isCutOff ? '' : `<path d="${whisker}" stroke="${COLOURS.whisker}"/>`,
    text(place(max) + 8, y + BAR - 3, `${isCutOff ? '→ ' : ''}${total(row).toFixed(3)}`),
  ].join('');
}

function rectangle(x: number, y: number, width: number, colour: string): string {
  return `<rect x="${x}" y="${y}" width="${Math.max(width, 0)}" height="${width === 10 ? 10 : BAR}" fill="${colour}"/>`;
}
