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
    run('ours', 'get', { server: 1.2 }),
    run('go', 'get', {}),
    run('ours-traced-1', 'get', { server: 1.205 }),
  ];
  const results: Results = { starts: [], leftOut: [], runs };
  const memory = { min: 70, median: 75, max: 90 };
  const start = {
    target: 'ours',
    milliseconds: undefined,
    memoryAtRest: memory,
    memoryUnderLoad: { ...memory, median: 165 },
  };
  const lines = goalTableOf(results, [start]).split('\n');
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ['goal', 'measured'],
    ['get: server to go', 'at most 1.25', '1.20', 'reached'],
    ['get: server and PostgreSQL to go', 'at most 0.75', '1.10', 'missed'],
    ['get: server of ours-traced-1 less that of ours, s/1,000', 'at most 0.006', '0.00500', 'reached'],
    ['memory at rest, MB', 'at most 80', '75.0', 'reached'],
    ['memory under load, MB', 'at most 160', '165', 'missed'],
  ]);
});

test('a batch is compared with single creates, and has a memory limit of its own', () => {
  const runs = [
    run('ours', 'batch', { server: 10, postgres: 30 }),
    run('ours', 'create-alone', { server: 2, postgres: 2 }),
  ];
  const memory = { min: 70, median: 175, max: 190 };
  const start = { target: 'ours', milliseconds: undefined, memoryAtRest: undefined, memoryUnderLoad: memory };
  const lines = goalTableOf({ starts: [], leftOut: [], runs }, [start]).split('\n');
  expect(lines.map((line) => line.trim().split(/ {2,}/))).toEqual([
    ['goal', 'measured'],
    ['batch of 100: server and PostgreSQL to one create that comes alone', 'at most 7.14', '10.0', 'missed'],
    ['memory under load, MB', 'at most 270', '175', 'reached'],
  ]);
});
