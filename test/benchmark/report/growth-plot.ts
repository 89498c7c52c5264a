import { svg, text } from '../../lab/report/svg.ts';
import { type GrowthPoint, lineOf } from './growth-table.ts';

const WIDTH = 1080;
const HEIGHT = 480;
const PLOT = { left: 60, right: 600, top: 50, bottom: 430 };
const COLOURS = ['#3b6ea5', '#c0504d', '#6a9a3b', '#8064a2', '#2aa198', '#d98e2b', '#555', '#b5558f'];

/** How lines of one configuration are drawn: those of the last one through, others broken. */
const DASHES = ['none', '6 4', '2 3'];

/** A line an operation and configuration: PostgreSQL's CPU time at each size, as a multiple of that at the first. */
export function growthPlotOf(points: readonly GrowthPoint[], titleOf: (name: string) => string): string {
  const sizes = [...new Set(points.map(({ users }) => users))];
  const lines = [...Map.groupBy(points, lineOf).values()];
  const configurations = [...new Set(points.map(({ configuration }) => configuration))].reverse();
  const workloads = [...new Set(points.map(({ workload }) => workload))];
  const highest = Math.max(2, ...points.map(({ growth }) => growth));
  const logarithms = sizes.map(Math.log10);
  const [low, high] = [Math.min(...logarithms), Math.max(...logarithms)];
  const x = (users: number) =>
    PLOT.left + ((PLOT.right - PLOT.left) * (Math.log10(users) - low)) / (high - low || 1);
  const y = (times: number) => PLOT.bottom - ((PLOT.bottom - PLOT.top) * times) / (highest * 1.05);

  const steps = Array.from({ length: Math.ceil(highest * 2) + 1 }, (_, step) => step / 2);
  const grid = steps
    .filter((times) => times <= highest * 1.05)
    .map(
      (times) =>
        `<path d="M${PLOT.left} ${y(times)}H${PLOT.right}" stroke="${times === 1 ? '#888' : '#ddd'}"/>` +
        text(PLOT.left - 8, y(times) + 4, times.toFixed(1), 'text-anchor="end"'),
    );
  const marks = sizes.map((users) =>
    text(x(users), PLOT.bottom + 20, users.toLocaleString('en'), 'text-anchor="middle"'),
  );
  const drawn = lines.map((own, index) => {
    const { workload, configuration } = own[0] as GrowthPoint;
    const colour = COLOURS[workloads.indexOf(workload) % COLOURS.length];
    const dashes = DASHES[configurations.indexOf(configuration) % DASHES.length];
    const places = own.map(({ users, growth }) => [x(users), y(growth)] as const);
    const dots = places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3"/>`);
    const title = `${titleOf(workload)} (${configuration}): ${own.map(({ growth }) => growth.toFixed(2)).join(', ')}`;
    // Titles stand below one another, for lines may end in the same place.
    const line = PLOT.top + 10 + index * 20;
    return `<g fill="${colour}" stroke="${colour}"><polyline points="${places.join(' ')}" fill="none" stroke-width="2" stroke-dasharray="${dashes}"/>
${dots.join('')}<rect x="${PLOT.right + 16}" y="${line - 9}" width="10" height="10"/></g>${text(PLOT.right + 32, line, title)}`;
  });
  const title = "PostgreSQL's CPU time per request, as a multiple of that with the fewest users";
  return svg(WIDTH, HEIGHT, title, [...grid, ...marks, ...drawn]);
}
