import { type Spread, spreadOf } from '../../lab/meters/percentile.ts';
import { tableOf } from '../../lab/report/table.ts';
import type { Results } from '../rounds.ts';
import type { Target } from '../targets/target.ts';
import type { Workload } from '../workloads.ts';
import { both, comparedAt, type Figure, memoryUnderLoad, spreadAt } from './summary.ts';

/** In cores: if the process of the load is busier, the target may serve more than is reported. */
const LOAD_LIMIT_CORES = 0.9;

/** The figures of one workload: the median of the rounds, and in brackets the least and the greatest. */
export function workloadTable({ runs }: Results, workload: Workload, targets: readonly Target[]): string {
  const place = ({ name: target }: Target, figure: Figure) => ({ target, workload: workload.name, figure });
  const [first] = targets as [Target];
  const own = targets.filter((target) => spreadAt(runs, place(target, both)));
  const spread =
    (digits: number, figure: Figure, print = written) =>
    (target: Target) =>
      print(spreadAt(runs, place(target, figure)), digits);
  const ratio = (figure: Figure) => (target: Target) =>
    written(comparedAt(runs, place(target, figure), place(first, figure)), 2);
  const loadOf: Figure = ({ load }) => load;
  const isAtLimit = (target: Target) => (spreadAt(runs, place(target, loadOf))?.max ?? 0) > LOAD_LIMIT_CORES;
  const table = tableOf<Target>(
    {
      '': (target) => target.title + (isAtLimit(target) ? ' *' : ''),
      'server s/1,000': spread(4, ({ server }) => server),
      'PostgreSQL s/1,000': spread(4, ({ postgres }) => postgres),
      'server ×': ratio(({ server }) => server),
      'both ×': ratio(both),
      'requests/s': spread(0, ({ requestsPerSecond }) => requestsPerSecond),
      'p50 ms': spread(2, ({ p50 }) => p50, middle),
      'p99 ms': spread(2, ({ p99 }) => p99, middle),
      'memory, MB': spread(0, ({ memory }) => memory),
      'others, cores': spread(1, ({ others }) => others),
    },
    own,
  );
  return own.length > 0 ? `\n${workload.title}\n${table}` : '';
}

export function startTable({ starts, runs }: Results, targets: readonly Target[]): string {
  const own = ({ name }: Target) => starts.filter(({ target }) => target === name);
  return tableOf<Target>(
    {
      '': ({ title }) => title,
      'start to first 200, ms': (target) => written(spreadOf(own(target).map((one) => one.milliseconds)), 0),
      'memory at rest, MB': (target) => written(spreadOf(own(target).map((one) => one.memoryAtRest)), 0),
      'under load, MB': ({ name }) => written(memoryUnderLoad(runs, name), 0),
    },
    targets.filter((target) => own(target).length > 0),
  );
}

export const LEGEND = `Median of the rounds (least–greatest). s/1,000: CPU seconds per 1,000 requests. ×: as a multiple of the first row
in the same round. others: what else kept the machine busy.
* The process that makes the load was busy to its limit: requests/s is a lower bound.`;

/** The median of the rounds, and in brackets the least and the greatest. */
function written(spread: Spread | undefined, digits: number): string {
  if (!spread) return '-';
  const { min, max } = spread;
  return `${middle(spread, digits)} (${plain(min, digits)}–${plain(max, digits)})`;
}

function middle(spread: Spread | undefined, digits: number): string {
  return spread ? plain(spread.median, digits) : '-';
}

function plain(value: number, digits: number): string {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
