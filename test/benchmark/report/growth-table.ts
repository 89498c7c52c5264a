import { aligned } from './table.ts';

/** What an operation costs with so many users: the middle of the rounds. */
export type GrowthPoint = {
  readonly workload: string;
  readonly users: number;
  /** CPU seconds per 1,000 requests. */
  readonly server: number;
  readonly postgres: number;
  readonly requestsPerSecond: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly others: number;
};

/** An operation's points after one another, with what PostgreSQL's cost has become of that at the first size. */
export function growthTableOf(points: readonly GrowthPoint[], titleOf: (name: string) => string): string {
  const head = [
    '',
    'users',
    'server s/1,000',
    'PostgreSQL s/1,000',
    '× first size',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'others, cores',
  ];
  const lines = [...Map.groupBy(points, ({ workload }) => workload)].flatMap(([workload, own]) =>
    own.map((point, index) => [
      index === 0 ? titleOf(workload) : '',
      point.users.toLocaleString('en'),
      point.server.toFixed(4),
      point.postgres.toFixed(4),
      growthOf(point, own).toFixed(2),
      Math.round(point.requestsPerSecond).toLocaleString('en'),
      point.p50.toFixed(2),
      point.p99.toFixed(2),
      point.others.toFixed(1),
    ]),
  );
  return aligned([head, ...lines]);
}

/** PostgreSQL's cost at a point, as a multiple of that at the first point of the same operation. */
export function growthOf({ postgres }: GrowthPoint, [first]: readonly GrowthPoint[]): number {
  return first && first.postgres > 0 ? postgres / first.postgres : 1;
}
