import { panel } from '../../lab/report/panel.ts';
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
  const logarithms = sizes.map(Math.log10);
  const [low, high] = [Math.min(...logarithms), Math.max(...logarithms)];
  const x = (users: number) =>
    PLOT.left + ((PLOT.right - PLOT.left) * (Math.log10(users) - low)) / (high - low || 1);
  const marks = sizes.map((users) =>
    text(x(users), PLOT.bottom + 20, users.toLocaleString('en'), 'text-anchor="middle"'),
  );
  const drawn = lines.map((own) => {
    const { workload, configuration } = own[0] as GrowthPoint;
    return {
      title: `${titleOf(workload)} (${configuration}): ${own.map(({ growth }) => growth.toFixed(2)).join(', ')}`,
      points: own.map(({ users, growth }) => [users, growth] as const),
      colour: COLOURS[workloads.indexOf(workload) % COLOURS.length] as string,
      dashes: DASHES[configurations.indexOf(configuration) % DASHES.length],
    };
  });
  const title = "PostgreSQL's CPU time per request, as a multiple of that with the fewest users";
  return svg(WIDTH, HEIGHT, title, [...panel({ ...PLOT, x, least: 2, lines: drawn }), ...marks]);
}
