import type { LoadProcess } from '../lab/load/load.ts';
import type { Progress } from './report/progress.ts';
import { demandRefusals, demandSame, SAMPLES, type Sample, sampleOf, untilServing } from './responses.ts';
import type { Stage } from './stage/stage.ts';
import { type Server, startServer } from './targets/start.ts';
import type { Program, Target } from './targets/target.ts';
import type { Workload } from './workloads.ts';

/** One start of a target, in milliseconds and megabytes. */
export type Start = { readonly target: string; readonly milliseconds: number; readonly memoryAtRest: number };

export type Run = {
  readonly round: number;
  readonly target: string;
  readonly workload: string;
  readonly requestsPerSecond: number;
  /** CPU seconds per 1,000 requests, of the server's process and of all of PostgreSQL. */
  readonly server: number;
  readonly postgres: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Maximum of the server's resident memory, in megabytes. */
  readonly memory: number;
  /** Cores that the load, and everything else on the machine, kept busy. */
  readonly load: number;
  readonly others: number;
  /** What is wrong with it; it is left out then. */
  readonly fault?: string;
};

/** All that was measured, and what was not. */
export type Results = { readonly starts: Start[]; readonly runs: Run[]; readonly leftOut: string[] };

export type Plan = {
  readonly targets: readonly Target[];
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly connections: number;
  /** Seconds that are counted in each run. */
  readonly seconds: number;
};

type Installed = { readonly target: Target; readonly programAt: (port: number) => Program };

/** A running target, and what it was asked. */
type Standing = {
  readonly target: Target;
  readonly server: Server;
  /** By workload: the result of `prepare`, and the number of requests that were sent. */
  readonly prepared: Record<string, string>;
  readonly sent: Record<string, number>;
};

const WARM_UP_S = 1;

const databaseOf = ({ name }: Target) => `of_${name.replaceAll('-', '_')}`;

/**
 * Installs, starts and compares all targets, then loads them alternately: each round has every workload, each workload
 * every target, and each round begins with another target, so that a change of the machine affects all of them.
 */
export async function runRounds(
  stage: Stage,
  load: LoadProcess,
  plan: Plan,
  progress: Progress,
): Promise<Results> {
  const results: Results = { starts: [], runs: [], leftOut: [] };
  const leaveOut = (what: string, error: unknown) => {
    const reason = `${what} is left out: ${error instanceof Error ? error.message : error}`;
    results.leftOut.push(reason);
    process.stderr.write(`!! ${reason}\n`);
  };

  async function start({ target, programAt }: Installed, round: number): Promise<Server> {
    progress(`start ${round} of ${plan.rounds}: ${target.title}`);
    const server = await startServer(programAt);
    const { milliseconds } = server;
    results.starts.push({ target: target.name, milliseconds, memoryAtRest: await server.memoryAtRest() });
    return server;
  }

  const installed = await installAll();
  for (let round = 1; round < plan.rounds; round += 1) {
    for (const one of installed) await (await start(one, round)).stop();
  }
  const standing: Standing[] = [];
  try {
    for (const one of installed) {
      standing.push({ target: one.target, server: await start(one, plan.rounds), prepared: {}, sent: {} });
    }
    await compareAll();
    await runAll();
  } finally {
    await Promise.all(standing.map(({ server }) => server.stop()));
  }
  return results;

  async function installAll(): Promise<readonly Installed[]> {
    const all: Installed[] = [];
    for (const target of plan.targets) {
      progress(`installing ${target.title}`);
      try {
        const program = await target.install(stage);
        await stage.createDatabase(databaseOf(target), target.users);
        const programAt = (port: number) => program(databaseOf(target), port);
        // A target that does not start is left out here.
        const server = await startServer(programAt);
        await server.stop();
        all.push({ target, programAt });
      } catch (error) {
        leaveOut(target.title, error);
      }
    }
    return all;
  }

  /** Finds out which workloads each target has, and rejects those whose responses are not those of the first. */
  async function compareAll(): Promise<void> {
    const references = new Map<string, Sample>();
    for (const { target, server, prepared, sent } of standing) {
      progress(`comparing the responses of ${target.title}`);
      const { users = stage.users } = target;
      const possible = plan.workloads.filter(({ name }) => target.workloads?.includes(name) ?? true);
      if (target.isHollow) {
        for (const { name } of possible) prepared[name] = '';
        continue;
      }
      const able: Record<string, string> = {};
      try {
        await untilServing(server.port, stage.credentials);
        await demandRefusals(server.port, stage.credentials);
        for (const workload of possible) {
          const sample = await sampleOf(server.port, workload, stage.credentials, users);
          if (!sample) {
            leaveOut(`${workload.name} for ${target.title}`, 'the target has nothing like it');
            continue;
          }
          const key = `${workload.name} of ${users}`;
          demandSame(sample, references.get(key) ?? sample);
          if (!references.has(key)) references.set(key, sample);
          able[workload.name] = sample.prepared;
          sent[workload.name] = SAMPLES;
        }
        Object.assign(prepared, able);
      } catch (error) {
        leaveOut(target.title, `${error instanceof Error ? error.message : error} ${server.errors()}`);
      }
    }
  }

  async function runAll(): Promise<void> {
    for (let round = 1; round <= plan.rounds; round += 1) {
      for (const workload of plan.workloads) {
        const able = standing.filter(({ prepared }) => workload.name in prepared);
        const first = (round - 1) % Math.max(able.length, 1);
        for (const one of [...able.slice(first), ...able.slice(0, first)]) {
          const target = one.target.name;
          progress(`round ${round} of ${plan.rounds}: ${workload.title}: ${one.target.title}`);
          // The service and Go get the same number of requests per second. A slower peer gets fewer.
          const paced = workload.pace ? peaksOf(workload.pace.of, ['ours', 'go', target]) : [];
          const rate = workload.pace && workload.pace.part * Math.min(...paced);
          if (rate === Number.POSITIVE_INFINITY) continue;
          const run = { round, target, workload: workload.name, ...(await measure(one, workload, rate)) };
          if (run.fault === undefined) results.runs.push(run);
          else leaveOut(`round ${round} of ${workload.name} for ${target}`, run.fault);
        }
      }
    }
  }

  /** Loads a server with a workload, at this rate if there is one, and vacuums its tables. */
  async function measure({ target, server, prepared, sent }: Standing, workload: Workload, rate?: number) {
    const { name, connections = plan.connections } = workload;
    const begin = sent[name] ?? 0;
    const { token, fresh } = stage.credentials;
    const freshTokens = name === 'fresh-token' ? fresh : [];
    const material = { token, freshTokens, begin, prepared: prepared[name] ?? '' };
    const [outcome] = await load.run({
      ...{ connections, rate, port: server.port, warmUp: WARM_UP_S, seconds: plan.seconds },
      requests: { workload: name, users: target.users ?? stage.users, ...material },
      watched: {
        server: server.processId,
        postgres: stage.postgresProcess,
        load: [load.processId, process.pid],
      },
    });
    if (!outcome?.used) throw new Error('the load was not watched');
    sent[name] = begin + outcome.sent;
    if (workload.writes) await stage.vacuum(databaseOf(target));
    const { used, answered, responseLatency, memory, refused, other, broken, breakReason } = outcome;
    const fault = `${refused} times 503, ${other} other responses, ${broken} broken: ${breakReason}`;
    return {
      requestsPerSecond: answered / used.seconds,
      server: (used.server * 1000) / answered,
      postgres: (used.postgres * 1000) / answered,
      ...{ p50: responseLatency.p50, p99: responseLatency.p99, memory },
      load: used.load / used.seconds,
      others: used.others,
      ...(refused + other + broken > 0 && { fault }),
    };
  }

  /** The requests per second of the last run of a workload, for each of these targets that has one. */
  function peaksOf(workload: string, targets: readonly string[]): readonly number[] {
    const ofTarget = (target: string) =>
      results.runs.findLast((run) => run.target === target && run.workload === workload);
    return targets.flatMap((target) => ofTarget(target)?.requestsPerSecond ?? []);
  }
}
