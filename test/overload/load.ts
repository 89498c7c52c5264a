import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** How long a caller waits for its answer; in milliseconds. */
export const PATIENCE = 1000;

/** What a generator is to do. */
export type Job = {
  readonly port: number;
  /** Whole requests as HTTP/1.1 writes them, sent one after the other. */
  readonly requests: readonly string[];
  /** Each stands in turn for `TOKEN` in a request. */
  readonly tokens?: readonly string[];
  /** Seconds after which the next token is sent; 0 sends another one with each request. */
  readonly renewAfter?: number;
  readonly connections: number;
  /** Requests a second, whatever becomes of them; 0 sends the next one when the last one is answered. */
  readonly rate: number;
  readonly seconds: number;
};

type Quantiles = { readonly p50: number; readonly p99: number; readonly longest: number };

/** What became of the requests that were due; latencies in milliseconds. */
export type Outcome = {
  readonly seconds: number;
  readonly due: number;
  readonly sent: number;
  readonly noConnection: number;
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

/** What stands for the token of a request. */
export const TOKEN = '{token}';

/** Runs a job in a process of its own. */
export async function run(job: Job): Promise<Outcome> {
  const [outcome] = await runAll([job]);
  return outcome as Outcome;
}

/** Runs jobs at the same time in one process of their own; gives an outcome for each. */
export async function runAll(jobs: readonly Job[]): Promise<readonly Outcome[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'generator.ts')], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  child.send(jobs);
  const [outcomes] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the generator ended with ${code}`))),
  ]);
  await once(child, 'exit');
  return outcomes;
}
