import type { Spread } from '../../lab/meters/percentile.ts';
import { tableOf } from '../../lab/report/table.ts';
import type { Row, StartRow } from './summary.ts';

type Titles = (name: string) => string;

/** In cores: if the process of the load is busier, the target may be able to do more than is reported. */
const LOAD_LIMIT = 0.9;

/** The figures of one workload: the median of the rounds, and in brackets the least and the greatest. */
export function workloadTableOf(rows: readonly Row[], titleOf: Titles): string {
  return tableOf<Row>(
    {
      '': ({ target, load }) => titleOf(target) + ((load?.max ?? 0) > LOAD_LIMIT ? ' *' : ''),
      'server s/1,000': ({ server }) => written(server, 4),
      'PostgreSQL s/1,000': ({ postgres }) => written(postgres, 4),
      'server ×': ({ serverRatio }) => written(serverRatio, 2),
      'both ×': ({ bothRatio }) => written(bothRatio, 2),
      'requests/s': ({ requestsPerSecond }) => written(requestsPerSecond, 0),
      'p50 ms': ({ p50 }) => middle(p50, 2),
      'p99 ms': ({ p99 }) => middle(p99, 2),
      'memory, MB': ({ memory }) => written(memory, 0),
      'others, cores': ({ others }) => written(others, 1),
    },
    rows,
  );
}

/** Starts and memory. */
export function startTableOf(rows: readonly StartRow[], titleOf: Titles): string {
  return tableOf<StartRow>(
    {
      '': ({ target }) => titleOf(target),
      'start to first 200, ms': ({ milliseconds }) => written(milliseconds, 0),
      'memory at rest, MB': ({ memoryAtRest }) => written(memoryAtRest, 0),
      'under load, MB': ({ memoryUnderLoad }) => written(memoryUnderLoad, 0),
    },
    rows,
  );
}

/** What the mark in a table means. */
export const LEGEND = `Middle of the rounds (least–greatest). s/1,000: CPU seconds per 1,000 requests. ×: as a multiple of the first row
in the same round. others: what else kept the machine busy.
* The process that makes the load was busy to its limit: requests/s is a lower bound.`;

/** The middle of the rounds, and in brackets the least and the greatest. */
export function written(spread: Spread | undefined, digits: number): string {
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
