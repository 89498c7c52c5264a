import { expect, test } from 'vitest';
import { type GrowthPoint, growthTableOf } from './growth-table.ts';

const point = (configuration: string, users: number, figures: Partial<GrowthPoint>): GrowthPoint => ({
  configuration,
  workload: 'get',
  users,
  server: 0.03,
  postgres: 0.01,
  growth: 1,
  reads: 0,
  wal: 0,
  requestsPerSecond: 30_000,
  p50: 2,
  p99: 5,
  others: 0.25,
  ...figures,
});

test('the sizes of an operation stand below one another, once for each configuration of PostgreSQL', () => {
  const points = [
    point('128MB', 1000, {}),
    point('128MB', 10_000, { postgres: 0.036, growth: 3.5, reads: 1.95, wal: 1234.4 }),
    point('6GB, huge pages', 1000, {}),
  ];
  expect(growthTableOf(points, () => 'get by id')).toBe(
    `
                              users  server s/1,000  PostgreSQL s/1,000  × first size  pages read  bytes logged  requests/s  p50 ms  p99 ms  others, cores
get by id (128MB)             1,000          0.0300              0.0100          1.00        0.00             0      30,000    2.00    5.00            0.3
                             10,000          0.0300              0.0360          3.50        1.95         1,234      30,000    2.00    5.00            0.3
get by id (6GB, huge pages)   1,000          0.0300              0.0100          1.00        0.00             0      30,000    2.00    5.00            0.3
`.slice(1, -1),
  );
});
