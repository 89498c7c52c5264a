import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startLoadProcess } from '../lab/load/load.ts';
import { machine } from '../lab/meters/machine.ts';
import { type Goal, goalTable } from './report/goals.ts';
import { startProgress } from './report/progress.ts';
import { LEGEND, startTable, workloadTable } from './report/tables.ts';
import { type Plan, type Results, runRounds } from './rounds.ts';
import { startStage } from './stage/stage.ts';

type Benchmark = Plan & {
  readonly users: number;
  readonly sharedBuffers: string;
  /** The folder of `results.json`. */
  readonly out: string;
  readonly goalsOf: (results: Results) => readonly Goal[];
};

/** Runs a benchmark, prints its tables and goals, and writes the results. Without a run there are no goals. */
export async function runBenchmark({ users, sharedBuffers, out, goalsOf, ...plan }: Benchmark) {
  const madeOn = machine();
  const progress = startProgress();
  const load = startLoadProcess();
  const needsFreshTokens = plan.workloads.some(({ name }) => name === 'fresh-token');
  const stage = await startStage({ users, needsFreshTokens, sharedBuffers, progress });
  try {
    const results = await runRounds(stage, load, plan, progress);
    const goals = results.runs.length > 0 ? goalsOf(results) : undefined;
    progress('done');
    const print = (text: string) => process.stdout.write(`${text}\n`);
    for (const workload of plan.workloads) print(workloadTable(results, workload, plan.targets));
    print(`\nStart and memory\n${startTable(results, plan.targets)}\n\n${LEGEND}`);
    if (goals) print(`\n${goalTable(goals)}\n`);
    for (const reason of results.leftOut) print(reason);
    await mkdir(out, { recursive: true });
    const { rounds, seconds, connections } = plan;
    const conditions = { machine: { ...madeOn, postgres: stage.postgresVersion }, users, sharedBuffers };
    const whole = { ...conditions, rounds, seconds, connections, goals, ...results };
    await writeFile(join(out, 'results.json'), `${JSON.stringify(whole, null, 1)}\n`);
    print(`\nWritten to ${out}: results.json`);
    return { results, goals };
  } finally {
    load.stop();
    await stage.stop();
  }
}
