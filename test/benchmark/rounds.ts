import { demandRefusals, demandSame, SAMPLES, sampleOf, untilServing } from './answers.ts';
import type { Load } from './load.ts';
import { type Effort, type Figures, measure, type Stand } from './measure.ts';
import { type Progress, warn } from './report/progress.ts';
import type { Stage } from './stage/stage.ts';
import { startServer } from './targets/start.ts';
import type { Program, Target } from './targets/target.ts';
import type { Workload } from './workloads.ts';

/** One start of a target, in milliseconds and megabytes. */
export type Start = { readonly target: string; readonly milliseconds: number; readonly memoryAtRest: number };

/** One run of a workload against a target. */
export type Run = Figures & { readonly round: number; readonly target: string; readonly workload: string };

/** All that was measured, and what was not. */
export type Results = { readonly starts: Start[]; readonly runs: Run[]; readonly leftOut: string[] };

type Plan = {
  readonly targets: readonly Target[];
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly effort: Effort;
};

type Installed = { readonly target: Target; readonly programAt: (port: number) => Program };
type Standing = Stand & { readonly target: Target };

/**
 * Installs, starts and compares all targets, then loads them in turns: each round has every workload, each workload
 * every target, and each round begins with another one, so that what changes on the machine is unfair to none.
 */
export async function runRounds(stage: Stage, load: Load, plan: Plan, progress: Progress): Promise<Results> {
  const results: Results = { starts: [], runs: [], leftOut: [] };
  const leaveOut = (what: string, error: unknown) => {
    const reason = `${what} is left out: ${error instanceof Error ? error.message : error}`;
    results.leftOut.push(reason);
    warn(reason);
  };

  const installed = await installAll(stage, plan.targets, progress, leaveOut);
  for (let round = 1; round < plan.rounds; round += 1) {
    for (const { target, programAt } of installed) {
      progress(`start ${round} of ${plan.rounds}: ${target.title}`);
      const server = await startServer(programAt);
      results.starts.push(await startOf(target, server));
      await server.stop();
    }
  }
  const standing: Standing[] = [];
  try {
    for (const { target, programAt } of installed) {
      progress(`start ${plan.rounds} of ${plan.rounds}: ${target.title}`);
      const server = await startServer(programAt);
      results.starts.push(await startOf(target, server));
      standing.push({ target, server, database: databaseOf(target), prepared: {}, sent: {} });
    }
    const stands = await compareAll(stage, plan.workloads, standing, progress, leaveOut);
    await runAll(stage, load, plan, stands, progress, results);
  } finally {
    await Promise.all(standing.map(({ server }) => server.stop()));
  }
  for (const run of results.runs.filter(({ faults }) => Object.keys(faults).length > 0)) {
    leaveOut(`round ${run.round} of ${run.workload} for ${run.target}`, JSON.stringify(run.faults));
  }
  return { ...results, runs: results.runs.filter(({ faults }) => Object.keys(faults).length === 0) };
}

type LeaveOut = (what: string, error: unknown) => void;

async function installAll(stage: Stage, targets: readonly Target[], progress: Progress, leaveOut: LeaveOut) {
  const installed: Installed[] = [];
  for (const target of targets) {
    progress(`installing ${target.title}`);
    try {
      const program = await target.install(stage);
      const database = await stage.createDatabase(databaseOf(target));
      const programAt = (port: number) => program(database, port);
      // One that does not start at all is left out here.
      const server = await startServer(programAt);
      await server.stop();
      installed.push({ target, programAt });
    } catch (error) {
      leaveOut(target.title, error);
    }
  }
  return installed;
}

const databaseOf = ({ name }: { readonly name: string }) => `of_${name.replaceAll('-', '_')}`;

async function startOf(target: Target, server: Standing['server']): Promise<Start> {
  return {
    target: target.name,
    milliseconds: server.milliseconds,
    memoryAtRest: await server.memoryAtRest(),
  };
}

/** The stands whose answers are those of the first, with the workloads that each of them can do. */
async function compareAll(
  stage: Stage,
  workloads: readonly Workload[],
  standing: readonly Standing[],
  progress: Progress,
  leaveOut: LeaveOut,
): Promise<readonly (Standing & { readonly workloads: readonly Workload[] })[]> {
  const references = new Map<Workload, NonNullable<Awaited<ReturnType<typeof sampleOf>>>>();
  const compared = [];
  for (const stand of standing) {
    const { target, server } = stand;
    progress(`comparing the answers of ${target.title}`);
    const wanted = workloads.filter(({ name }) => target.workloads?.includes(name) ?? true);
    if (target.isHollow) {
      compared.push({ ...stand, workloads: wanted });
      continue;
    }
    const able: Workload[] = [];
    const prepared: Record<string, string> = {};
    const sent: Record<string, number> = {};
    try {
      await untilServing(server.port, stage.credentials);
      await demandRefusals(server.port, stage.credentials);
      for (const workload of wanted) {
        const sample = await sampleOf(server.port, workload, stage.credentials, stage.users);
        if (!sample) {
          leaveOut(`${workload.name} for ${target.title}`, 'the target has nothing like it');
          continue;
        }
        demandSame(sample, references.get(workload) ?? sample);
        if (!references.has(workload)) references.set(workload, sample);
        able.push(workload);
        prepared[workload.name] = sample.prepared;
        sent[workload.name] = SAMPLES;
      }
      compared.push({ ...stand, prepared, sent, workloads: able });
    } catch (error) {
      leaveOut(target.title, `${error instanceof Error ? error.message : error} ${server.errors()}`);
    }
  }
  return compared;
}

async function runAll(
  stage: Stage,
  load: Load,
  { workloads, rounds, effort }: Plan,
  stands: Awaited<ReturnType<typeof compareAll>>,
  progress: Progress,
  { runs }: Results,
): Promise<void> {
  for (let round = 1; round <= rounds; round += 1) {
    for (const workload of workloads) {
      const able = stands.filter((stand) => stand.workloads.includes(workload));
      const first = (round - 1) % Math.max(able.length, 1);
      for (const stand of [...able.slice(first), ...able.slice(0, first)]) {
        const target = stand.target.name;
        progress(`round ${round} of ${rounds}: ${workload.title}: ${stand.target.title}`);
        // The service and Go get the same number of requests per second. A slower peer gets fewer.
        const paced = workload.pace ? peaksOf(runs, workload.pace.of, ['ours', 'go', target]) : [];
        const rate = workload.pace && workload.pace.part * Math.min(...paced);
        if (rate === Number.POSITIVE_INFINITY) continue;
        const figures = await measure(stage, load, stand, workload, effort, rate);
        runs.push({ round, target, workload: workload.name, ...figures });
      }
    }
  }
}

/** The requests per second of the last run of a workload, for each of these targets that has one. */
function peaksOf(runs: readonly Run[], workload: string, targets: readonly string[]): readonly number[] {
  const ofTarget = (target: string) =>
    runs.findLast((run) => run.target === target && run.workload === workload);
  return targets.flatMap((target) => ofTarget(target)?.requestsPerSecond ?? []);
}
