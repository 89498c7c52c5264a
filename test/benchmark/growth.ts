// npm run growth: what each operation costs as the table grows. See README.md in this folder.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SAMPLES, sampleOf, untilServing } from './answers.ts';
import { startLoad } from './load/load.ts';
import { type Figures, measure } from './measure.ts';
import { chosen, readOptions } from './options.ts';
import { growthPlotOf } from './report/growth-plot.ts';
import { type GrowthPoint, growthTableOf } from './report/growth-table.ts';
import { machine } from './report/machine.ts';
import { startProgress, warn } from './report/progress.ts';
import { spreadOf } from './report/statistics.ts';
import { fill } from './stage/fill.ts';
import { startStage } from './stage/stage.ts';
import { ours } from './targets/ours.ts';
import { startServer } from './targets/start.ts';
import { workloads as allWorkloads } from './workloads/index.ts';
import type { Workload } from './workloads/workload.ts';

/** One kind of each statement: the others send the same ones. */
const OPERATIONS = ['get', 'create', 'update', 'batch', 'list', 'deep-list', 'by-email', 'changes'];

const { effort, rounds, sizes, sharedBuffers, out, ...names } = readOptions('growth');
const [target] = chosen(ours, names.targets);
if (!target) throw new Error('there is nothing to measure');
const workloads = chosen(allWorkloads, names.workloads ?? OPERATIONS).filter(({ pace }) => !pace);
const madeOn = machine();
const progress = startProgress();

const load = startLoad();
const firstStage = await startStage({ users: sizes[0] ?? 0, sharedBuffers, progress });
const program = await target.install(firstStage);
const database = await firstStage.createDatabase('growing');
const server = await startServer((port) => program(database, port));
const sent: Record<string, number> = {};
const points: GrowthPoint[] = [];
try {
  await untilServing(server.port, firstStage.credentials);
  for (const [index, size] of sizes.entries()) {
    const from = index === 0 ? size + 1 : (sizes[index - 1] ?? 0) + 1;
    await fill(firstStage.urlOf(database), from, size, progress);
    for (const workload of workloads) {
      const point = await pointOf(workload, size);
      if (point) points.push(point);
      else warn(`${workload.name} is left out: the target has nothing like it`);
    }
  }
  const titleOf = (name: string) => allWorkloads.find((one) => one.name === name)?.title ?? name;
  progress('done');
  process.stdout.write(`\n${growthTableOf(points, titleOf)}\n`);
  await mkdir(out, { recursive: true });
  const whole = { machine: { ...madeOn, postgres: firstStage.postgresVersion }, rounds, effort, points };
  await writeFile(join(out, 'growth.json'), `${JSON.stringify(whole, null, 1)}\n`);
  await writeFile(join(out, 'growth.svg'), growthPlotOf(points, titleOf));
  process.stdout.write(`\nWritten to ${out}: growth.json, growth.svg\n`);
} finally {
  load.stop();
  await server.stop();
  await firstStage.stop();
}

/** The rounds of one operation at one size; undefined when the target lacks it. */
async function pointOf(workload: Workload, size: number): Promise<GrowthPoint | undefined> {
  progress(`${size.toLocaleString('en')} users: ${workload.title}`);
  const stage = { ...firstStage, users: size };
  const { name } = workload;
  const begin = sent[name] ?? 0;
  const sample = await sampleOf(server.port, workload, stage.credentials, size, begin);
  if (!sample) return undefined;
  sent[name] = begin + SAMPLES;
  const stand = { server, database, prepared: { [name]: sample.prepared }, sent };
  const runs: Figures[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    progress(`${size.toLocaleString('en')} users: ${workload.title}, round ${round} of ${rounds}`);
    const figures = await measure(stage, load, stand, workload, effort);
    if (Object.keys(figures.faults).length > 0) warn(`${name}: ${JSON.stringify(figures.faults)}`);
    runs.push(figures);
  }
  const median = (figure: (run: Figures) => number | null) => spreadOf(runs.map(figure))?.median ?? 0;
  return {
    workload: name,
    users: size,
    server: median((run) => run.server),
    postgres: median((run) => run.postgres),
    requestsPerSecond: median((run) => run.requestsPerSecond),
    p50: median((run) => run.p50),
    p99: median((run) => run.p99),
    others: median((run) => run.others),
  };
}
