import { expect, test } from 'vitest';
import { spreadOf } from '../../lab/meters/percentile.ts';
import type { Run } from '../rounds.ts';
import { rowsOf, startRowsOf } from './summary.ts';

const run = (round: number, target: string, server: number, memory: number): Run => ({
  round,
  target,
  workload: 'get',
  requestsPerSecond: 1000,
  server,
  postgres: 1,
  p50: 1,
  p99: 2,
  memory,
  load: 0.5,
  others: 0,
  faults: {},
});

test('a spread is the least, the middle and the greatest of what is known', () => {
  expect(spreadOf([3, null, 1, 2])).toEqual({ min: 1, median: 2, max: 3 });
  expect(spreadOf([4, 1, 2, 3])).toEqual({ min: 1, median: 2.5, max: 4 });
  expect(spreadOf([null])).toBeUndefined();
});

test('ratios are taken within each round, and only there', () => {
  const runs = [run(1, 'ours', 1, 50), run(1, 'go', 2, 10), run(2, 'ours', 4, 70), run(2, 'go', 4, 10)];
  const alone = run(3, 'go', 9, 20);
  const rows = rowsOf({ starts: [], leftOut: [], runs: [...runs, alone] }, 'ours');
  expect(
    rows.map(({ target, rounds, serverRatio, bothRatio }) => ({ target, rounds, serverRatio, bothRatio })),
  ).toEqual([
    {
      target: 'ours',
      rounds: 2,
      serverRatio: { min: 1, median: 1, max: 1 },
      bothRatio: { min: 1, median: 1, max: 1 },
    },
    {
      target: 'go',
      rounds: 3,
      serverRatio: { min: 1, median: 1.5, max: 2 },
      bothRatio: { min: 1, median: 1.25, max: 1.5 },
    },
  ]);
});

test('the memory under load is the most in each round', () => {
  const runs = [run(1, 'ours', 1, 50), run(1, 'ours', 1, 90), run(2, 'ours', 1, 70)];
  const starts = [{ target: 'ours', milliseconds: 100, memoryAtRest: 40 }];
  expect(startRowsOf({ starts, leftOut: [], runs })).toEqual([
    {
      target: 'ours',
      milliseconds: { min: 100, median: 100, max: 100 },
      memoryAtRest: { min: 40, median: 40, max: 40 },
      memoryUnderLoad: { min: 70, median: 80, max: 90 },
    },
  ]);
});
