import { expect, test } from 'vitest';
import type { Results, Run } from '../rounds.ts';
import { goalTableOf } from './goals.ts';

const run = (target: string, workload: string, figures: Partial<Run>): Run => ({
  round: 1,
  target,
  workload,
  requestsPerSecond: 1000,
  server: 1,
  postgres: 1,
  inKernel: 0.3,
  p50: 1,
  p99: 2,
  memory: 100,
  load: 0.5,
  others: 0,
  faults: {},
  ...figures,
});

test('each measured goal is reached or missed; the others are left out', () => {
  const runs = [
    run('ours', 'get', { server: 1.5, requestsPerSecond: 1200 }),
    run('go', 'get', {}),
    run('ours-traced-1', 'get', { server: 1.505 }),
  ];
  const results: Results = { starts: [], leftOut: [], runs };
  const memory = { min: 70, median: 75, max: 90 };
  const start = { target: 'ours', milliseconds: undefined, memoryAtRest: memory, memoryUnderLoad: undefined };
  const lines = goalTableOf(results, [start]).split('\n');
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ['goal', 'measured'],
    ['get: server to go', 'at most 1', '1.50', 'missed'],
    ['get: server and PostgreSQL to go', 'at most 0.7', '1.25', 'missed'],
    ['get: requests/s to go', 'at least 1', '1.20', 'reached'],
    ['get: server of ours-traced-1 less that of ours, s/1,000', 'at most 0.006', '0.00500', 'reached'],
    ['memory at rest, MB', 'at most 80', '75.0', 'reached'],
  ]);
});

test('a batch is compared with single creates as a goal, and with simultaneous creates without a limit', () => {
  const runs = [
    run('ours', 'batch', { server: 10, postgres: 30 }),
    run('ours', 'create-alone', { server: 2, postgres: 2 }),
    run('ours', 'create', { server: 1, postgres: 0.5 }),
  ];
  const lines = goalTableOf({ starts: [], leftOut: [], runs }, []).split('\n');
  expect(lines.map((line) => line.trim().split(/ {2,}/))).toEqual([
    ['goal', 'measured'],
    ['batch of 100: server to one create that comes alone', 'at most 12.5', '5.00', 'reached'],
    ['batch of 100: server to one of many creates at once', 'no limit', '10.0'],
    ['batch of 100: PostgreSQL to one create that comes alone', 'at most 12.5', '15.0', 'missed'],
    ['batch of 100: PostgreSQL to one of many creates at once', 'no limit', '60.0'],
  ]);
});
