import { aligned } from './table.ts';

/** What an operation costs with so many users: the middle of the rounds. */
export type GrowthPoint = {
  /** PostgreSQL's shared buffers, and whether they lie in huge pages. */
  readonly configuration: string;
  readonly workload: string;
  readonly users: number;
  /** CPU seconds per 1,000 requests. */
  readonly server: number;
  readonly postgres: number;
  /** PostgreSQL's, as a multiple of that with the fewest users in the same round. */
  readonly growth: number;
  /** Per request: pages that shared buffers did not have, and bytes written to the log. */
  readonly reads: number;
  readonly wal: number;
  readonly requestsPerSecond: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly others: number;
};

/** An operation's points after one another, for each configuration of PostgreSQL. */
export function growthTableOf(points: readonly GrowthPoint[], titleOf: (name: string) => string): string {
  const head = [
    '',
    'users',
    'server s/1,000',
    'PostgreSQL s/1,000',
    '× first size',
    'pages read',
    'bytes logged',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'others, cores',
  ];
  const lines = [...Map.groupBy(points, lineOf)].flatMap(([, own]) =>
    own.map((point, index) => [
      index === 0 ? `${titleOf(point.workload)} (${point.configuration})` : '',
      point.users.toLocaleString('en'),
      point.server.toFixed(4),
      point.postgres.toFixed(4),
      point.growth.toFixed(2),
      point.reads.toFixed(2),
      Math.round(point.wal).toLocaleString('en'),
      Math.round(point.requestsPerSecond).toLocaleString('en'),
      point.p50.toFixed(2),
      point.p99.toFixed(2),
      point.others.toFixed(1),
    ]),
  );
  return aligned([head, ...lines]);
}

/** What points of one line have in common. */
export function lineOf({ configuration, workload }: GrowthPoint): string {
  return `${workload} ${configuration}`;
}
