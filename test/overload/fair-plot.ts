import { svg, text } from '../lab/report/svg.ts';
import type { Outcome } from './load.ts';

/** A load: what the tenth caller sent, from how many connections, and the results of all ten. */
type Panel = {
  readonly variant: string;
  readonly connections: number;
  readonly nine: readonly Outcome[];
  readonly tenth: Outcome;
};

const PANEL = { width: 240, height: 120, gap: 40, top: 60 };
const COLUMNS = 3;
const TITLE = 'Success within 1 s by second: the nine (blue) and the tenth (red)';

/** A panel for each load, with a line for each caller, from 0 to 100 %. */
export function plotFairness(rows: readonly Panel[]): string {
  const lines = Math.ceil(rows.length / COLUMNS);
  const step = { x: PANEL.width + PANEL.gap, y: PANEL.height + PANEL.gap };
  const parts = rows.flatMap(({ variant, connections, nine, tenth }, index) => {
    const x = PANEL.gap / 2 + (index % COLUMNS) * step.x;
    const y = PANEL.top + Math.floor(index / COLUMNS) * step.y;
    return [
      text(x, y - 6, `${variant}, ${connections} connections`),
      `<rect x="${x}" y="${y}" width="${PANEL.width}" height="${PANEL.height}" fill="none" stroke="#bbbbbb"/>`,
      ...nine.map((outcome) => line(outcome, { x, y, colour: '#1f77b4' })),
      line(tenth, { x, y, colour: '#d62728' }),
    ];
  });
  return svg(PANEL.gap + COLUMNS * step.x, PANEL.top + lines * step.y, TITLE, parts);
}

function line({ bySecond }: Outcome, { x, y, colour }: { x: number; y: number; colour: string }): string {
  const points = bySecond.map(({ due, inTime }, second) => {
    const at = x + (second / Math.max(bySecond.length - 1, 1)) * PANEL.width;
    return `${at.toFixed(1)},${(y + PANEL.height * (1 - inTime / Math.max(due, 1))).toFixed(1)}`;
  });
  return `<polyline fill="none" stroke="${colour}" points="${points.join(' ')}"/>`;
}
