import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Material, workloads } from '../../benchmark/workloads.ts';
import { residentMemory } from '../meters/memory.ts';
import { percentiles } from '../meters/percentile.ts';
import { openWindow, type Watched } from '../meters/window.ts';
import { Generator, type Load } from './generator.ts';
import { USERS, wireOf } from './wire.ts';

/** Stands for the token in a listed request. */
export const TOKEN = '{token}';

/** Maximum time in which an impatient caller waits for a response. */
export const PATIENCE_MS = 1000;

const MEMORY_PERIOD_MS = 100;

/** A load, as it is sent to the process that makes it. */
export type Job = Pick<Load, 'port' | 'connections' | 'rate' | 'restMs' | 'patienceMs' | 'queues'> & {
  readonly requests: Listed | Generated;
  /** Seconds before anything is counted. */
  readonly warmUp?: number;
  /** Seconds that are counted. */
  readonly seconds: number;
  /** Processes whose CPU time and memory are measured meanwhile. */
  readonly watched?: Watched;
};

/** Whole requests as HTTP/1.1 writes them, sent one after the other. */
type Listed = {
  readonly list: readonly string[];
  /** They stand, one after the other, for `TOKEN` in a request. */
  readonly tokens?: readonly string[];
  /** Seconds after which the next token is sent; 0 sends another one with each request. */
  readonly renewAfter?: number;
};

/** Requests of a workload of the benchmark, about users from number 1 to `users`. */
type Generated = Omit<Material, 'anyUser'> & { readonly workload: string; readonly users: number };

export type Outcome = Awaited<ReturnType<typeof makeLoad>>;

/** A process that makes loads, so that these take no time from the process that measures. */
export type LoadProcess = ReturnType<typeof startLoadProcess>;

/** Starts the process. It ends with this process at the latest. */
export function startLoadProcess() {
  const child = fork(import.meta.filename);
  const ended = once(child, 'exit').then(([code]) => ({
    error: `the load's process has ended with ${code}`,
  }));
  return {
    processId: child.pid as number,
    async run(...jobs: readonly Job[]): Promise<readonly Outcome[]> {
      child.send(jobs);
      const reported = once(child, 'message').then(([report]) => report);
      const { outcomes, error } = await Promise.race([reported, ended]);
      if (error) throw new Error(error);
      return outcomes;
    },
    stop: () => void child.disconnect(),
  };
}

/** Makes these loads at the same time, in a process of their own. */
export async function runLoads(...jobs: readonly Job[]): Promise<readonly Outcome[]> {
  const load = startLoadProcess();
  return load.run(...jobs).finally(load.stop);
}

if (import.meta.main) {
  process.on('disconnect', () => process.exit());
  process.on('message', async (jobs: readonly Job[]) => {
    const report = await Promise.all(jobs.map(makeLoad)).then(
      (outcomes) => ({ outcomes }),
      (error) => ({ error: String(error?.stack ?? error) }),
    );
    process.send?.(report);
  });
}

async function makeLoad({ requests, warmUp = 0, seconds, watched, ...load }: Job) {
  let [successes, refusals]: [number[], number[]] = [[], []];
  let begun = performance.now();
  let [answered, other] = [0, 0];
  let isCounting = true;
  let breakReason: string | undefined;
  const generator = new Generator({
    ...load,
    onBreak: (reason) => {
      breakReason ??= reason;
    },
    nextRequest: requestsFrom(requests, () => (performance.now() - begun) / 1000),
    onResponse(status, from, to) {
      if (!isCounting) return;
      if (status === 503) refusals.push(to - from);
      else if (status < 200 || status >= 300) other += 1;
      else {
        successes.push(to - from);
        if (to - from <= (load.patienceMs ?? Number.POSITIVE_INFINITY)) answered += 1;
      }
    },
  });
  const isPrecise = load.rate !== undefined && watched !== undefined;
  if (isPrecise) schedule('--rr', 1);
  await generator.start();
  await sleep(warmUp * 1000);
  if (warmUp > 0) [successes, answered] = [[], 0];
  begun = performance.now();
  const closeWindow = watched && openWindow(watched);
  let memory = 0;
  const looking = setInterval(() => {
    if (watched) memory = Math.max(memory, residentMemory(watched.server));
  }, MEMORY_PERIOD_MS);
  await sleep(seconds * 1000);
  const used = closeWindow?.();
  const end = performance.now();
  clearInterval(looking);
  // Callers that give up in time: what was sent within the window counts, whenever it is answered.
  isCounting = load.patienceMs !== undefined;
  await generator.stop();
  if (isPrecise) schedule('--other', 0);
  return {
    /** Requests since the first one, the warm-up included. */
    ...generator.counts,
    seconds: (end - begun) / 1000,
    /** Successes before the callers gave up. */
    answered,
    late: successes.length - answered,
    refused: refusals.length,
    other,
    /** Why the first connection of callers that wait has broken. */
    breakReason,
    responseLatency: quantiles(successes),
    refusalLatency: quantiles(refusals),
    used,
    /** Maximum of the server's resident memory, in megabytes; 0 if it was not watched. */
    memory,
  };
}

/** Eight callers read a list of one user for `seconds`, in this process. */
export async function readSteadily(
  { url, token }: { readonly url: string; readonly token: () => Promise<string> },
  { seconds, restMs }: { readonly seconds: number; readonly restMs?: number },
) {
  const list = [wireOf({ method: 'GET', target: `${USERS}?limit=1`, token: await token() })];
  const port = Number(new URL(url).port);
  const job = { port, requests: { list }, connections: 8, patienceMs: 30_000, restMs, seconds };
  const { sent, answered, responseLatency } = await makeLoad(job);
  return { sent, ok: answered, p99: responseLatency.p99 };
}

/** Makes the next request; `elapsed` are the seconds since the load began. */
function requestsFrom(requests: Listed | Generated, elapsed: () => number): () => string {
  if ('workload' in requests) {
    const workload = workloads.find(({ name }) => name === requests.workload);
    if (!workload) throw new Error(`there is no workload ${requests.workload}`);
    const anyUser = () => 1 + Math.floor(Math.random() * requests.users);
    const next = workload.requests({ ...requests, anyUser });
    return () => wireOf(next());
  }
  const { list, tokens, renewAfter = Number.POSITIVE_INFINITY } = requests;
  let sent = -1;
  return () => {
    sent += 1;
    const request = list[sent % list.length] as string;
    if (!tokens) return request;
    const renewed = renewAfter > 0 ? Math.floor(elapsed() / renewAfter) : sent;
    return request.replace(TOKEN, tokens[renewed % tokens.length] as string);
  };
}

/** In milliseconds; 0 if there are none. */
function quantiles(latencies: readonly number[]) {
  const [p50 = 0, p99 = 0] = percentiles(latencies, 0.5, 0.99).map((time) => time || 0);
  return { p50, p99 };
}

/**
 * Gives this process priority over all others, where that is allowed. A load with a rate wakes up for each request, and
 * would wait 3 to 6 ms for a processor at times, which would count as the server's time.
 */
function schedule(policy: '--rr' | '--other', priority: number): void {
  spawnSync('chrt', ['--all-tasks', policy, '--pid', String(priority), String(process.pid)]);
}
