import { tableOf } from '../../lab/report/table.ts';

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
  const rows = [...Map.groupBy(points, lineOf).values()].flatMap((own) =>
    own.map((point, index) => ({
      ...point,
      title: index === 0 ? `${titleOf(point.workload)} (${point.configuration})` : '',
    })),
  );
  return tableOf<(typeof rows)[number]>(
    {
      '': ({ title }) => title,
      users: ({ users }) => users.toLocaleString('en'),
      'server s/1,000': ({ server }) => server.toFixed(4),
      'PostgreSQL s/1,000': ({ postgres }) => postgres.toFixed(4),
      '× first size': ({ growth }) => growth.toFixed(2),
      'pages read': ({ reads }) => reads.toFixed(2),
      'bytes logged': ({ wal }) => Math.round(wal).toLocaleString('en'),
      'requests/s': ({ requestsPerSecond }) => Math.round(requestsPerSecond).toLocaleString('en'),
      'p50 ms': ({ p50 }) => p50.toFixed(2),
      'p99 ms': ({ p99 }) => p99.toFixed(2),
      'others, cores': ({ others }) => others.toFixed(1),
    },
    rows,
  );
}

/** What points of one line have in common. */
function lineOf({ configuration, workload }: GrowthPoint): string {
  return `${workload} ${configuration}`;
}
