import { execFile } from 'node:child_process';
import { cpus } from 'node:os';
import { promisify } from 'node:util';
import { untilServing } from '../../benchmark/answers.ts';
import { startLoad } from '../../benchmark/load.ts';
import { type Figures, measure } from '../../benchmark/measure.ts';
import { chosen, readOptions } from '../../benchmark/options.ts';
import { startProgress } from '../../benchmark/report/progress.ts';
import { written } from '../../benchmark/report/table.ts';
import { startStage } from '../../benchmark/stage/stage.ts';
import { ours } from '../../benchmark/targets/ours.ts';
import { startServer } from '../../benchmark/targets/start.ts';
import { workloads as allWorkloads } from '../../benchmark/workloads.ts';
import { defineExperiment } from '../experiment.ts';
import { childrenOf } from '../meters/cpu.ts';
import { spreadOf } from '../meters/percentile.ts';
import { aligned } from '../report/table.ts';

/** Each has a core of its own, counted from the first; PostgreSQL and the load share the others. */
const INSTANCES = 2;

/** Requests a second of all together, and CPU seconds per 1,000 requests. */
type Together = { readonly requestsPerSecond: number; readonly server: number; readonly postgres: number };

/** How far two instances on two cores go over one PostgreSQL. See test/benchmark/README.md. */
export const experiment = defineExperiment({
  name: 'instances',
  promise: 'Two instances on two cores serve more than one instance does.',
  takes: 'a few minutes',
  needs: 'Linux, four cores and taskset',
  async run({ words, print, defer }) {
    const { effort, rounds, users, sharedBuffers, ...names } = readOptions('instances', words);
    const [target] = chosen(ours, ['ours']) as readonly [(typeof ours)[number]];
    const [workload] = chosen(allWorkloads, names.workloads ?? ['get']) as readonly [
      (typeof allWorkloads)[number],
    ];
    const progress = startProgress();
    const cores = cpus().length;
    if (cores < 2 * INSTANCES) throw new Error(`it takes ${2 * INSTANCES} cores`);
    const others = `${INSTANCES}-${cores - 1}`;

    const stage = await startStage({ users, freshTokens: 64, sharedBuffers, progress });
    defer(stage.stop);
    await pinTo(others, process.pid, stage.postgresProcess, ...childrenOf(stage.postgresProcess));
    const database = await stage.createDatabase('of_all');
    const programAt = await target.install(stage);
    const standing = await Promise.all(
      Array.from({ length: INSTANCES }, async (_, core) => {
        const server = await startServer((port) => programAt(database, port));
        defer(server.stop);
        await pinTo(String(core), server.processId);
        await untilServing(server.port, stage.credentials);
        const load = startLoad();
        defer(load.stop);
        await pinTo(others, load.processId);
        return { server, load, database, prepared: {}, sent: { [workload.name]: core * 1e9 } };
      }),
    );

    const [alone, together]: [Together[], Together[]] = [[], []];
    for (let round = 1; round <= rounds; round += 1) {
      progress(`round ${round} of ${rounds}: one instance`);
      const one = standing[round % INSTANCES] as (typeof standing)[number];
      alone.push(sumOf([await measure(stage, one.load, one, workload, effort)]));
      progress(`round ${round} of ${rounds}: ${INSTANCES} instances`);
      const runs = standing.map((each) => measure(stage, each.load, each, workload, effort));
      together.push(sumOf(await Promise.all(runs)));
    }
    const scaled = together.map(
      (run, round) => run.requestsPerSecond / (alone[round]?.requestsPerSecond ?? Number.NaN),
    );
    progress('done');
    print(`
${aligned([
  [workload.title, 'requests/s', 'server s/1,000', 'PostgreSQL s/1,000'],
  ['one instance', ...figuresOf(alone)],
  [`${INSTANCES} instances`, ...figuresOf(together)],
])}

${INSTANCES} instances serve ${written(spreadOf(scaled), 2)} times what one does in the same round.`);
    return true;
  },
});

function sumOf(runs: readonly Figures[]): Together {
  const requestsPerSecond = runs.reduce((sum, run) => sum + run.requestsPerSecond, 0);
  const share = (run: Figures) => run.requestsPerSecond / requestsPerSecond;
  return {
    requestsPerSecond,
    server: runs.reduce((sum, run) => sum + (run.server ?? 0) * share(run), 0),
    // Each run saw all of PostgreSQL's time.
    postgres: runs.reduce((sum, run) => sum + (run.postgres * share(run)) / runs.length, 0),
  };
}

function figuresOf(runs: readonly Together[]): readonly string[] {
  const of = (figure: (run: Together) => number, digits: number) =>
    written(spreadOf(runs.map(figure)), digits);
  return [
    of((run) => run.requestsPerSecond, 0),
    of(({ server }) => server, 4),
    of(({ postgres }) => postgres, 4),
  ];
}

/** What a process starts later runs there, too. */
async function pinTo(cores: string, ...processIds: readonly number[]): Promise<void> {
  for (const id of processIds) await promisify(execFile)('taskset', ['-a', '-c', '-p', cores, String(id)]);
}
