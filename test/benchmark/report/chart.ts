import type { Row } from './summary.ts';
import { svg, text } from './svg.ts';

const WIDTH = 860;
const NAMES = 210;
const BAR = 14;
const GAP = 6;
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
    const largest = Math.max(...own.map((row) => row.both?.max ?? 0));
    const scale = (WIDTH - NAMES - 130) / (largest || 1);
    for (const row of own) {
      panels.push(barOf(row, y, scale, titles.target(row.target)));
      y += BAR + GAP;
    }
    y += 16;
  }
  return svg(WIDTH, y, [
    text(10, 20, 'CPU seconds per 1,000 requests', 'font-weight="bold" font-size="15"'),
    rectangle(10, 30, 10, COLOURS.server),
    text(24, 40, "the server's process"),
    rectangle(170, 30, 10, COLOURS.postgres),
    text(184, 40, "all of PostgreSQL's processes; middle of the rounds, least to greatest of the sum"),
    ...panels,
  ]);
}

function barOf(row: Row, y: number, scale: number, title: string): string {
  const server = (row.server?.median ?? 0) * scale;
  const { min = 0, max = 0 } = row.both ?? {};
  const line = y + BAR / 2;
  const [left, right] = [NAMES + min * scale, NAMES + max * scale];
  return [
    text(NAMES - 8, y + BAR - 3, title, 'text-anchor="end"'),
    rectangle(NAMES, y, server, COLOURS.server),
    rectangle(NAMES + server, y, total(row) * scale - server, COLOURS.postgres),
    `<path d="M${left} ${line - 3}v6M${left} ${line}H${right}M${right} ${line - 3}v6" stroke="${COLOURS.whisker}"/>`,
    text(right + 8, y + BAR - 3, total(row).toFixed(3)),
  ].join('');
}

function rectangle(x: number, y: number, width: number, colour: string): string {
  return `<rect x="${x}" y="${y}" width="${Math.max(width, 0)}" height="${width === 10 ? 10 : BAR}" fill="${colour}"/>`;
}
