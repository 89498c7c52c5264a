import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sampleOf, untilServing } from '../../benchmark/answers.ts';
import { startLoad } from '../../benchmark/load.ts';
import { measure } from '../../benchmark/measure.ts';
import { chosen, readOptions } from '../../benchmark/options.ts';
import { type Breakdown, breakdownOf } from '../../benchmark/profile/breakdown.ts';
import { connectProfiler } from '../../benchmark/profile/inspector.ts';
import { startProgress, warn } from '../../benchmark/report/progress.ts';
import { startStage } from '../../benchmark/stage/stage.ts';
import { ours } from '../../benchmark/targets/ours.ts';
import { startServer } from '../../benchmark/targets/start.ts';
import { workloads as allWorkloads, type Workload } from '../../benchmark/workloads.ts';
import { defineExperiment } from '../experiment.ts';
import { cpuOfMainThread } from '../meters/cpu.ts';
import { aligned } from '../report/table.ts';

/** A smaller part is not worth a line. */
const LEAST_PART = 0.005;
const FUNCTIONS = 25;

/** Where the CPU time of each workload goes. See test/benchmark/README.md. */
export const experiment = defineExperiment({
  name: 'profile',
  promise: 'Shows where the processor time of each kind of request goes.',
  takes: 'a few minutes',
  async run({ words, print, defer }) {
    const { effort, users, sharedBuffers, out, ...names } = readOptions('profile', words);
    const [target] = chosen(ours, names.targets);
    if (!target) throw new Error('there is nothing to profile');
    const workloads = chosen(allWorkloads, names.workloads).filter(({ pace }) => !pace);
    const progress = startProgress();

    const load = startLoad();
    defer(load.stop);
    const stage = await startStage({ users, sharedBuffers, progress });
    defer(stage.stop);
    const program = await target.install(stage);
    const database = await stage.createDatabase('profiled');
    const server = await startServer((port) => {
      const { variables, ...rest } = program(database, port);
      return { ...rest, variables: { ...variables, NODE_OPTIONS: '--inspect=127.0.0.1:0' } };
    });
    defer(server.stop);
    const profiler = await connectProfiler(server.errors);
    await untilServing(server.port, stage.credentials);
    await mkdir(out, { recursive: true });
    for (const workload of workloads) {
      progress(`profiling ${workload.title}`);
      await profileOf(workload, profiler);
    }
    profiler.close();
    progress(`done: ${out} has a .cpuprofile of each, for the developer tools of a browser\n`);
    return true;

    async function profileOf(workload: Workload, profiler: Awaited<ReturnType<typeof connectProfiler>>) {
      const { name, title } = workload;
      const sample = await sampleOf(server.port, workload, stage.credentials, users);
      if (!sample) return warn(`${name} is left out: the target has nothing like it`);
      const sent = { [name]: sample.answers.length };
      const stand = { server, database, prepared: { [name]: sample.prepared }, sent };
      await measure(stage, load, stand, workload, { ...effort, seconds: 1 });

      const before = { sent: sent[name] ?? 0, kernel: cpuOfMainThread(server.processId).system };
      await profiler.start();
      const figures = await measure(stage, load, stand, workload, { ...effort, warmUp: 0.1 });
      const profile = await profiler.stop();
      const inKernel = (cpuOfMainThread(server.processId).system - before.kernel) * 1e6;
      await writeFile(join(out, `${name}.cpuprofile`), JSON.stringify(profile));

      print(tableOf(title, breakdownOf(profile, inKernel), (sent[name] ?? 0) - before.sent));
      const used = `${(1000 * (figures.server ?? 0)).toFixed(1)} µs a request`;
      print(`\nAll threads while profiled, from /proc: ${used}`);
    }
  },
});

function tableOf(title: string, { total, modules, functions }: Breakdown, requests: number): string {
  const line = ([name, time]: readonly [string, number]) => [
    name,
    `${((100 * time) / total).toFixed(1)} %`,
    (time / requests).toFixed(2),
  ];
  const shown = modules.filter(([, time]) => time > LEAST_PART * total).map(line);
  const busiest = functions.slice(0, FUNCTIONS).map(line);
  const table = [
    [title, 'part', 'µs a request'],
    ...shown,
    ['', '', ''],
    ['busiest functions', '', ''],
    ...busiest,
  ];
  return `\n${aligned(table)}`;
}
