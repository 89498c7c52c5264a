import { percentiles } from '../meters/percentile.ts';
import { Generator } from './generator.ts';
import { serveJobs, startWorker } from './worker.ts';

/** Milliseconds after which an impatient caller gives up. */
const PATIENCE = 1000;

/** Stands for the token in a request. */
export const TOKEN = '{token}';

/** What one caller sends over its connections. */
export type Job = {
  readonly port: number;
  /** Whole requests as HTTP/1.1 writes them, sent in turn. */
  readonly requests: readonly string[];
  /** Each stands in turn for `TOKEN` in a request. */
  readonly tokens?: readonly string[];
  /** Seconds after which the next token is sent; 0 sends another one with each request. */
  readonly renewAfter?: number;
  readonly connections: number;
  /** Requests a second, whether they are answered or not. Without it, each connection sends the next one after a response. */
  readonly rate?: number;
  /** Whether it queues requests while no connection is free. Otherwise they are not sent. */
  readonly queues?: boolean;
  readonly seconds: number;
};

type Quantiles = { readonly p50: number; readonly p99: number; readonly longest: number };

/** The results of one caller; latencies in milliseconds. */
export type Outcome = {
  readonly seconds: number;
  readonly due: number;
  readonly sent: number;
  readonly noConnection: number;
  /** Successes in time. */
  readonly answered: number;
  readonly late: number;
  readonly refused: number;
  readonly givenUp: number;
  readonly broken: number;
  readonly other: number;
  readonly answerLatency: Quantiles;
  readonly refusalLatency: Quantiles;
  /** The fewest that were answered in time within one second. */
  readonly worstSecond: number;
  /** By the second in which requests were due: how many, and how many of them succeeded in time. */
  readonly bySecond: readonly { readonly due: number; readonly inTime: number }[];
};

/** Loads a service with one impatient caller. */
export async function run(job: Job): Promise<Outcome> {
  const [outcome] = await runAll([job]);
  return outcome as Outcome;
}

/** Loads a service with several callers at the same time, from one process. Resolves with the outcome of each. */
export async function runAll(jobs: readonly Job[]): Promise<readonly Outcome[]> {
  const worker = startWorker<readonly Job[], readonly Outcome[]>(import.meta.filename);
  return worker.run(jobs).finally(worker.stop);
}

if (import.meta.main) serveJobs((jobs: readonly Job[]) => Promise.all(jobs.map(outcomeOf)));

async function outcomeOf(job: Job): Promise<Outcome> {
  const { port, connections, rate, queues, seconds } = job;
  const [successes, refusals]: [number[], number[]] = [[], []];
  const answeredBySecond: number[] = [];
  const bySecond: { due: number; inTime: number }[] = [];
  let begun = performance.now();
  let [answered, other] = [0, 0];

  function secondOf(moment: number): { due: number; inTime: number } {
    const second = Math.max(Math.floor((moment - begun) / 1000), 0);
    while (bySecond.length <= second) bySecond.push({ due: 0, inTime: 0 });
    return bySecond[second] as { due: number; inTime: number };
  }

  const generator = new Generator({
    ...{ port, connections, rate, queues, patience: PATIENCE },
    nextRequest: requestsOf(job, () => performance.now() - begun),
    onDue: (moment) => {
      secondOf(moment).due += 1;
    },
    onResponse(status, from, to) {
      if (status === 503) refusals.push(to - from);
      else if (status < 200 || status >= 300) other += 1;
      else {
        successes.push(to - from);
        if (to - from > PATIENCE) return;
        answered += 1;
        const second = Math.floor((to - begun) / 1000);
        answeredBySecond[second] = (answeredBySecond[second] ?? 0) + 1;
        secondOf(from).inTime += 1;
      }
    },
  });
  await generator.start();
  begun = performance.now();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const end = performance.now();
  await generator.stop();
  const wholeSeconds = Array.from(
    { length: Math.floor(seconds) },
    (_, second) => answeredBySecond[second] ?? 0,
  );
  return {
    ...generator.counts,
    seconds: (end - begun) / 1000,
    answered,
    late: successes.length - answered,
    refused: refusals.length,
    other,
    answerLatency: quantiles(successes),
    refusalLatency: quantiles(refusals),
    worstSecond: Math.min(...wholeSeconds),
    bySecond,
  };
}

/** The requests of a job in turn, with the token that is in use after so many milliseconds. */
function requestsOf({ requests, tokens, renewAfter = Number.POSITIVE_INFINITY }: Job, elapsed: () => number) {
  let sent = -1;
  return (): string => {
    sent += 1;
    const request = requests[sent % requests.length] as string;
    if (!tokens) return request;
    const renewed = renewAfter > 0 ? Math.floor(elapsed() / 1000 / renewAfter) : sent;
    return request.replace(TOKEN, tokens[renewed % tokens.length] as string);
  };
}

function quantiles(latencies: readonly number[]): Quantiles {
  const [p50 = 0, p99 = 0, longest = 0] = percentiles(latencies, 0.5, 0.99, 1).map(
    (time) => Math.round(time) || 0,
  );
  return { p50, p99, longest };
}
