import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SAMPLES, sampleOf, untilServing } from '../../benchmark/answers.ts';
import { startLoad } from '../../benchmark/load.ts';
import { type Figures, measure, type Stand } from '../../benchmark/measure.ts';
import { chosen, readOptions } from '../../benchmark/options.ts';
import { type GrowthPoint, growthTableOf } from '../../benchmark/report/growth-table.ts';
import { startProgress, warn } from '../../benchmark/report/progress.ts';
import { databaseOfSize, warmUp } from '../../benchmark/stage/sized.ts';
import { type Stage, startStage } from '../../benchmark/stage/stage.ts';
import { ours } from '../../benchmark/targets/ours.ts';
import { type Server, startServer } from '../../benchmark/targets/start.ts';
import type { Target } from '../../benchmark/targets/target.ts';
import { workloads as allWorkloads, type Workload } from '../../benchmark/workloads.ts';
import { removeDataFolder } from '../../stage/postgres.ts';
import { defineExperiment } from '../experiment.ts';
import { machine } from '../meters/machine.ts';
import { type PageWork, pageWorkOf } from '../meters/pages.ts';
import { spreadOf } from '../meters/percentile.ts';

/** One kind of each statement: the others send the same ones. */
const OPERATIONS = ['get', 'create', 'update', 'batch', 'list', 'deep-list', 'by-email', 'changes'];

/** The service over a table of one size. */
type Sized = { readonly stage: Stage; readonly database: string; readonly server: Server };

/** A run, and what PostgreSQL's sessions did for each request of it. */
type Run = Figures & PageWork;

/** What an operation at one size is measured with, and what that gave. */
type Measured = Sized & Stand & { readonly runs: Run[] };

/** What each operation costs as the table grows. See test/benchmark/README.md. */
export const experiment = defineExperiment({
  name: 'growth',
  promise: 'Each operation costs as much with 10,000,000 users as with 100,000.',
  takes: 'an hour',
  needs: 'Linux and 12 GB of disk',
  async run({ words, print, defer }) {
    const { effort, rounds, sizes, configurations, checkpoints, out, ...names } = readOptions(
      'growth',
      words,
    );
    const [target] = chosen(ours, names.targets) as readonly [Target];
    const workloads = chosen(allWorkloads, names.workloads ?? OPERATIONS).filter(({ pace }) => !pace);
    const madeOn = machine();
    const progress = startProgress();

    const load = startLoad();
    defer(load.stop);
    const points: GrowthPoint[] = [];
    let postgresVersion = '';
    // Left behind by a run that was cut off it serves the next one.
    const dataFolder = names.keep ?? join(import.meta.dirname, '../../../.data/growth/postgres');
    try {
      for (const sharedBuffers of configurations) points.push(...(await pointsWith(sharedBuffers)));
    } finally {
      if (!names.keep) await removeDataFolder(dataFolder);
    }
    const titleOf = (name: string) => allWorkloads.find((one) => one.name === name)?.title ?? name;
    progress('done');
    print(`\n${growthTableOf(points, titleOf)}`);
    await mkdir(out, { recursive: true });
    const whole = { machine: { ...madeOn, postgres: postgresVersion }, rounds, effort, checkpoints, points };
    await writeFile(join(out, 'growth.json'), `${JSON.stringify(whole, null, 1)}\n`);
    print(`\nWritten to ${out}: growth.json`);
    return true;

    /** All operations at all sizes, over a PostgreSQL with shared buffers of this size. */
    async function pointsWith(sharedBuffers: string): Promise<readonly GrowthPoint[]> {
      const first = await startStage({ users: 0, sharedBuffers, kept: dataFolder, progress });
      postgresVersion = first.postgresVersion;
      const [settings] = await first.query('postgres', 'SHOW huge_pages_status');
      const configuration = `${sharedBuffers}${settings?.huge_pages_status === 'on' ? ', huge pages' : ''}`;
      const program = await target.install(first);
      const standing: Sized[] = [];
      try {
        for (const users of sizes) {
          const stage = { ...first, users };
          const database = await databaseOfSize(stage, progress);
          await warmUp(stage, database, { isWritten: workloads.some(({ writes }) => writes) }, progress);
          const server = await startServer((port) => program(database, port));
          standing.push({ stage, database, server });
          await untilServing(server.port, stage.credentials);
        }
        const found: GrowthPoint[] = [];
        for (const workload of workloads) found.push(...(await pointsOf(workload, standing, configuration)));
        return found;
      } finally {
        await Promise.all(standing.map(({ server }) => server.stop()));
        await first.stop();
      }
    }

    /** One operation at all sizes in turns, so that what changes on the machine is unfair to none; nothing where it is lacking. */
    async function pointsOf(
      workload: Workload,
      standing: readonly Sized[],
      configuration: string,
    ): Promise<readonly GrowthPoint[]> {
      const { name, title } = workload;
      // What has to be new has been written by no run before, over a table that was kept either.
      const begin = Date.now();
      const stands: Measured[] = [];
      for (const { stage, database, server } of standing) {
        progress(`${stage.users.toLocaleString('en')} users: ${title}`);
        const sample = await sampleOf(server.port, workload, stage.credentials, stage.users, begin);
        if (!sample) {
          warn(`${name} is left out: the target has nothing like it`);
          return [];
        }
        stands.push({
          ...{ stage, database, server, runs: [] },
          prepared: { [name]: sample.prepared },
          sent: { [name]: begin + SAMPLES },
        });
      }
      for (let round = 1; round <= rounds; round += 1) {
        for (const { stage, runs, ...stand } of stands) {
          const users = stage.users.toLocaleString('en');
          progress(`${configuration}: ${title}, round ${round} of ${rounds}: ${users} users`);
          if (checkpoints) await stage.query(stand.database, 'CHECKPOINT');
          runs.push(await runOf(stage, stand, workload));
        }
      }
      return stands.map(({ stage, runs }) => {
        const median = (figure: (run: Run, round: number) => number | null) =>
          spreadOf(runs.map(figure))?.median ?? 0;
        return {
          configuration,
          workload: name,
          users: stage.users,
          server: median((run) => run.server),
          postgres: median((run) => run.postgres),
          growth: median((run, round) => run.postgres / (stands[0]?.runs[round]?.postgres ?? Number.NaN)),
          reads: median((run) => run.reads),
          wal: median((run) => run.wal),
          requestsPerSecond: median((run) => run.requestsPerSecond),
          p50: median((run) => run.p50),
          p99: median((run) => run.p99),
          others: median((run) => run.others),
        };
      });
    }

    async function runOf(stage: Stage, stand: Stand, workload: Workload): Promise<Run> {
      const asked = () => stand.sent[workload.name] ?? 0;
      const [before, begin] = [await pageWorkOf(stage, stand.database), asked()];
      const figures = await measure(stage, load, stand, workload, effort);
      const after = await pageWorkOf(stage, stand.database);
      if (Object.keys(figures.faults).length > 0) warn(`${workload.name}: ${JSON.stringify(figures.faults)}`);
      const perRequest = (count: keyof PageWork) => (after[count] - before[count]) / (asked() - begin);
      return { ...figures, reads: perRequest('reads'), wal: perRequest('wal') };
    }
  },
});
