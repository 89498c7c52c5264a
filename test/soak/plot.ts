import { medianOf } from '../lab/meters/percentile.ts';
import type { Point } from '../lab/meters/slope.ts';
import { panel, round } from '../lab/report/panel.ts';
import { svg, text } from '../lab/report/svg.ts';

/** A line, and how values that share a place on it become one. */
type Curve = {
  readonly title: string;
  readonly points: readonly Point[];
  readonly joined?: 'median' | 'most';
};

/** Curves over one axis each, by the titles of their panels. */
type Panels = Readonly<Record<string, readonly Curve[]>>;

const TITLE = 'Mixed load, with faults at the grey lines; what lies on grey warms up';

const WIDTH = 980;
const LEFT = 60;
const RIGHT = 800;
const PANEL = 130;
const GAP = 50;
const TOP = 60;
const COLOURS = ['#b9c9dc', '#3b6ea5', '#c0504d', '#6a9a3b', '#8064a2'];

/** Number of points of a line: an hour of seconds is more than a picture shows. */
const PLACES = 360;

/** Panels below one another over time; grey lines are the moments of faults, and what lies before `judgedFrom` warms up. */
export function plotOf(panels: Panels, faults: readonly number[], judgedFrom: number): string {
  const all = Object.entries(panels);
  const end = Math.max(...all.flatMap(([, curves]) => curves.map(({ points }) => points.at(-1)?.[0] ?? 0)));
  const x = (hours: number) => LEFT + ((RIGHT - LEFT) * hours) / (end || 1);
  const bottom = TOP + all.length * (PANEL + GAP) - GAP;
  const ticks = Array.from({ length: Math.floor(end * 6) + 1 }, (_, tenth) => tenth / 6);
  return svg(WIDTH, bottom + 40, TITLE, [
    `<rect x="${LEFT}" y="${TOP}" width="${round(x(judgedFrom) - LEFT)}" height="${bottom - TOP}" fill="#f4f4f4"/>`,
    `<path d="${faults.map((hours) => `M${round(x(hours))} ${TOP}V${bottom}`).join('')}" stroke="#eee"/>`,
    ...all.flatMap(([title, curves], index) => drawn(title, curves, TOP + index * (PANEL + GAP), x)),
    ...ticks.map((hours) => text(x(hours), bottom + 18, `${Math.round(hours * 60)}`, 'text-anchor="middle"')),
    text((LEFT + RIGHT) / 2, bottom + 34, 'minutes', 'text-anchor="middle"'),
  ]);
}

function drawn(title: string, curves: readonly Curve[], top: number, x: (hours: number) => number): string[] {
  const lines = curves.map(({ title: name, points, joined = 'median' }, index) => ({
    title: name,
    points: thinned(points, joined),
    colour: COLOURS[(index + (curves.length === 1 ? 1 : 0)) % COLOURS.length] as string,
  }));
  const place = { left: LEFT, right: RIGHT, top, bottom: top + PANEL };
  return [text(LEFT, top - 8, title), ...panel({ ...place, x, least: 1, lines })];
}

function thinned(points: readonly Point[], joined: 'median' | 'most'): readonly Point[] {
  const size = Math.max(1, Math.ceil(points.length / PLACES));
  return Array.from({ length: Math.ceil(points.length / size) }, (_, place) => {
    const some = points.slice(place * size, (place + 1) * size);
    const values = some.map(([, value]) => value);
    return [some[0]?.[0] ?? 0, joined === 'most' ? Math.max(...values) : medianOf(values)] as const;
  });
}
