import type { Spread } from '../../lab/meters/spread.ts';
import type { Row, StartRow } from './summary.ts';

type Titles = (name: string) => string;

/** Where the load's own process was this busy, in cores, the target may be able to do more than is told. */
const LOAD_LIMIT = 0.9;

/** The figures of one workload for people: middle of the rounds, and in brackets the least and the greatest. */
export function tableOf(rows: readonly Row[], titleOf: Titles): string {
  const head = [
    '',
    'server s/1,000',
    'PostgreSQL s/1,000',
    'server ×',
    'both ×',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'memory, MB',
    'others, cores',
  ];
  const lines = rows.map((row) => [
    titleOf(row.target) + ((row.load?.max ?? 0) > LOAD_LIMIT ? ' *' : ''),
    written(row.server, 4),
    written(row.postgres, 4),
    written(row.serverRatio, 2),
    written(row.bothRatio, 2),
    written(row.requestsPerSecond, 0),
    middle(row.p50, 2),
    middle(row.p99, 2),
    written(row.memory, 0),
    written(row.others, 1),
  ]);
  return aligned([head, ...lines]);
}

/** Starts and memory for people. */
export function startTableOf(rows: readonly StartRow[], titleOf: Titles): string {
  const head = ['', 'start to first 200, ms', 'memory at rest, MB', 'under load, MB'];
  const lines = rows.map((row) => [
    titleOf(row.target),
    written(row.milliseconds, 0),
    written(row.memoryAtRest, 0),
    written(row.memoryUnderLoad, 0),
  ]);
  return aligned([head, ...lines]);
}

/** What the mark in a table means. */
export const LEGEND = `Middle of the rounds (least–greatest). s/1,000: CPU seconds per 1,000 requests. ×: as a multiple of the first row
in the same round. others: what else kept the machine busy.
* The process that makes the load was busy to its limit: requests/s is a lower bound.`;

/** Columns of text side by side: the first to the left, the others to the right. */
export function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((text, column) =>
          column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

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
