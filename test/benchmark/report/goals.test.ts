import { expect, test } from 'vitest';
import type { Results, Run } from '../rounds.ts';
import { benchGoals, goalTable, memoryGoals } from './goals.ts';
import { both, comparedAt } from './summary.ts';

const run = (target: string, workload: string, figures: Partial<Run> = {}): Run => ({
  ...{ round: 1, target, workload, requestsPerSecond: 1000, server: 1, postgres: 1 },
  ...{ p50: 1, p99: 2, memory: 100, load: 0.5, others: 0 },
  ...figures,
});

function linesOf(given: Partial<Results>): readonly (readonly string[])[] {
  const results = { starts: [], leftOut: [], runs: [], ...given };
  const table = goalTable([...benchGoals(results), ...memoryGoals(results)]);
  return table.split('\n').map((line) => line.trim().split(/ {2,}/));
}

test('each measured goal is reached or missed; the others are left out', () => {
  const runs = [
    run('ours', 'get', { server: 1.2, memory: 165 }),
    run('go', 'get'),
    run('ours-traced-1', 'get', { server: 1.205 }),
  ];
  expect(linesOf({ runs, starts: [{ target: 'ours', milliseconds: 161, memoryAtRest: 75 }] })).toEqual([
    ['goal', 'measured'],
    ['get: server to go', 'at most 1.25', '1.20', 'reached'],
    ['get: server and PostgreSQL to go', 'at most 0.75', '1.10', 'missed'],
    ['get: server of ours-traced-1 less that of ours, s/1,000', 'at most 0.006', '0.00500', 'reached'],
    ['start to first 200, ms', 'at most 160', '161', 'missed'],
    ['memory at rest, MB', 'at most 80', '75.0', 'reached'],
    ['memory under load, MB', 'at most 160', '165', 'missed'],
  ]);
});

test('figures are compared within each round, and only there', () => {
  const runs = [
    run('ours', 'get', { server: 1 }),
    run('go', 'get', { server: 2 }),
    run('ours', 'get', { round: 2, server: 4 }),
    run('go', 'get', { round: 2, server: 4 }),
    run('go', 'get', { round: 3, server: 9 }),
  ];
  const at = (target: string) => ({ target, workload: 'get', figure: both });
  expect(comparedAt(runs, at('go'), at('ours'))).toEqual({ min: 1, median: 1.25, max: 1.5 });
});
