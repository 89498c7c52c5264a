import { chosen, readOptions } from '../../benchmark/options.ts';
import { growthGoals, isReached, summaryOf } from '../../benchmark/report/goals.ts';
import { runBenchmark } from '../../benchmark/run-benchmark.ts';
import { ours } from '../../benchmark/targets/ours.ts';
import type { Target } from '../../benchmark/targets/target.ts';
import { workloads } from '../../benchmark/workloads.ts';
import { defineExperiment } from '../experiment.ts';

/** One workload for each statement. The others send the same ones. */
const OPERATIONS = ['get', 'create', 'update', 'list', 'deep-list', 'by-email'];

/** The cost of each operation as the table grows. See test/benchmark/README.md. */
export const experiment = defineExperiment({
  promise:
    'With 10,000,000 users in place of 100,000, PostgreSQL takes at most 1.25 times as long for a create, a lookup by email and a page by key, and 1.6 times for a get and an update.',
  takes: 'an hour',
  needs: 'Linux and 12 GB of disk',
  async run({ words, printRow }) {
    const { sizes, ...options } = readOptions('lab -- growth', words);
    const targets = sizes.map((users) => ({
      ...(ours[0] as Target),
      name: `ours-${users}`,
      title: `${users.toLocaleString('en')} users`,
      users,
    }));
    const [first = '', last = ''] = [targets.at(0)?.name, targets.at(-1)?.name];
    const { goals = [] } = await runBenchmark({
      ...options,
      targets,
      workloads: chosen(workloads, options.workloads ?? OPERATIONS),
      goalsOf: (results) => growthGoals(results, first, last),
    });
    printRow(summaryOf(goals), 'all');
    return goals.some(isReached) && goals.every((goal) => isReached(goal) !== false);
  },
});
