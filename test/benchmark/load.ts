import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Generator } from '../lab/load/generator.ts';
import { wireOf } from '../lab/load/wire.ts';
import { serveJobs, startWorker, type Worker } from '../lab/load/worker.ts';
import { residentMemory } from '../lab/meters/memory.ts';
import { percentiles } from '../lab/meters/percentile.ts';
import { openWindow, type Used, type Watched } from '../lab/meters/window.ts';
import { workloads } from './workloads.ts';

/** What the process of the load is asked to do: this workload, against this port. */
type Job = {
  readonly workload: string;
  readonly port: number;
  readonly connections: number;
  /** Seconds before anything is counted, and seconds that are. */
  readonly warmUp: number;
  readonly seconds: number;
  /** Requests a second, whether answered or not; without it each connection asks as soon as it is answered. */
  readonly rate?: number;
  readonly users: number;
  readonly token: string;
  readonly tokensFile: string;
  readonly begin: number;
  readonly prepared: string;
  readonly watched: Watched & { readonly server: number };
};

/** What came of it. */
type Outcome = {
  /** Requests that were sent in all, the warm-up included. */
  readonly sent: number;
  /** Requests answered within the window. */
  readonly answered: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly used: Used;
  /** The most memory that the server held, in megabytes. */
  readonly memory: number;
  /** Answers with another status than the workload has, and other faults: each kind and how often. */
  readonly faults: Readonly<Record<string, number>>;
};

/** The process that makes the load. */
export type Load = Worker<Job, Outcome>;

/** Starts it; it ends with this process at the latest. */
export const startLoad = (): Load => startWorker(import.meta.filename);

if (import.meta.main) serveJobs(runLoad);

/** Milliseconds between two looks at the server's memory. */
const LOOK_EVERY = 100;

const tokens = new Map<string, readonly string[]>();

/** Loads the server, counting after the warm-up, until the time is over and all is answered. */
async function runLoad({ port, connections, rate, watched, ...job }: Job): Promise<Outcome> {
  const workload = workloads.find(({ name }) => name === job.workload);
  if (!workload) throw new Error(`there is no workload ${job.workload}`);
  const nextRequest = workload.requests({
    anyUser: () => 1 + Math.floor(Math.random() * job.users),
    token: job.token,
    freshTokens: tokensIn(job.tokensFile),
    begin: job.begin,
    prepared: job.prepared,
  });
  const faults: Record<string, number> = {};
  const onBreak = (kind: string) => {
    faults[kind] = (faults[kind] ?? 0) + 1;
  };
  let latencies: number[] = [];
  const generator = new Generator({
    ...{ port, connections, rate, onBreak },
    nextRequest: () => wireOf(nextRequest()),
    onResponse(status, from, to) {
      if (status !== workload.status) onBreak(`status ${status}`);
      latencies.push(to - from);
    },
  });
  const goBack = rate ? goBeforeOthers() : undefined;
  await generator.start();
  await sleep(job.warmUp * 1000);
  let memory = 0;
  const looking = setInterval(() => {
    memory = Math.max(memory, residentMemory(watched.server));
  }, LOOK_EVERY);
  latencies = [];
  const close = openWindow(watched);
  await sleep(job.seconds * 1000);
  const used = close();
  const counted = latencies;
  latencies = [];
  clearInterval(looking);
  await generator.stop();
  goBack?.();
  const [p50 = 0, p99 = 0] = percentiles(counted, 0.5, 0.99);
  return { sent: generator.counts.sent, answered: counted.length, p50, p99, used, memory, faults };
}

function tokensIn(file: string): readonly string[] {
  const known = tokens.get(file) ?? (JSON.parse(readFileSync(file, 'utf8')) as readonly string[]);
  tokens.set(file, known);
  return known;
}

/**
 * Lets this process go before all others, where it may; gives what ends that. One that sends requests at their moments wakes
 * up for each of them, and would wait for a processor 3 to 6 milliseconds at times: the server would be blamed for that.
 */
function goBeforeOthers(): () => void {
  schedule('--rr', 1);
  return () => schedule('--other', 0);
}

function schedule(policy: '--rr' | '--other', priority: number): void {
  spawnSync('chrt', ['--all-tasks', policy, '--pid', String(priority), String(process.pid)]);
}
