// npm run bench: what a request costs here, beside what it costs elsewhere. See README.md in this folder.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { machine } from '../lab/meters/machine.ts';
import { startLoad } from './load.ts';
import { chosen, readOptions } from './options.ts';
import { peers } from './peers/peers.ts';
import { goalTableOf } from './report/goals.ts';
import { startProgress } from './report/progress.ts';
import { rowsOf, startRowsOf } from './report/summary.ts';
import { LEGEND, startTableOf, workloadTableOf } from './report/table.ts';
import { runRounds } from './rounds.ts';
import { startStage } from './stage/stage.ts';
import { ours, oursWith } from './targets/ours.ts';
import { workloads as allWorkloads } from './workloads.ts';

const { effort, rounds, users, sharedBuffers, out, variants, ...names } = readOptions('bench');
const ownVariants = variants.map(oursWith);
const allTargets = [...ours, ...ownVariants, ...peers];
const chosenTargets = chosen(allTargets, names.targets);
const targets = allTargets.filter((target) => chosenTargets.includes(target) || ownVariants.includes(target));
const workloads = chosen(allWorkloads, names.workloads);
const madeOn = machine();
const progress = startProgress();

const load = startLoad();
const stage = await startStage({ users, sharedBuffers, progress });
try {
  const plan = { targets, workloads, rounds, effort };
  const results = await runRounds(stage, load, plan, progress);
  const rows = rowsOf(results, targets[0]?.name ?? '');
  const starts = startRowsOf(results);
  const titleOf = (name: string) => allTargets.find((target) => target.name === name)?.title ?? name;

  progress('done');
  const print = (text: string) => process.stdout.write(`${text}\n`);
  for (const { name, title } of workloads) {
    const own = rows.filter(({ workload }) => workload === name);
    if (own.length > 0) print(`\n${title}\n${workloadTableOf(own, titleOf)}`);
  }
  print(`\nStart and memory\n${startTableOf(starts, titleOf)}\n\n${LEGEND}`);
  print(`\n${goalTableOf(results, starts)}\n`);
  for (const reason of results.leftOut) print(reason);

  await mkdir(out, { recursive: true });
  const postgres = stage.postgresVersion;
  const whole = {
    machine: { ...madeOn, postgres },
    users,
    rounds,
    effort,
    rows,
    startRows: starts,
    ...results,
  };
  await writeFile(join(out, 'results.json'), `${JSON.stringify(whole, null, 1)}\n`);
  print(`\nWritten to ${out}: results.json`);
  process.exitCode = results.runs.length > 0 ? 0 : 1;
} finally {
  load.stop();
  await stage.stop();
}
