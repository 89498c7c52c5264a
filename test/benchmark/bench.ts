// npm run bench: the cost of a request, beside its cost elsewhere. See README.md in this folder.
import { proofRow } from '../stage/proof-row.ts';
import { chosen, readOptions } from './options.ts';
import { peers } from './peers/peers.ts';
import { benchGoals, memoryGoals, summaryOf } from './report/goals.ts';
import { runBenchmark } from './run-benchmark.ts';
import { ours, oursWith } from './targets/ours.ts';
import { workloads } from './workloads.ts';

const options = readOptions('bench', process.argv.slice(2));
const variants = options.variants.map(oursWith);
const all = [...ours, ...variants, ...peers];
const chosenTargets = chosen(all, options.targets);
const { goals } = await runBenchmark({
  ...options,
  targets: all.filter((target) => chosenTargets.includes(target) || variants.includes(target)),
  workloads: chosen(workloads, options.workloads),
  goalsOf: (results) => [...benchGoals(results), ...memoryGoals(results)],
});
if (goals) process.stdout.write(`${proofRow(summaryOf(goals), 'all')}\n`);
process.exitCode = goals === undefined ? 1 : 0;
