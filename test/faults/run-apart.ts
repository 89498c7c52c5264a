import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { failedOutcome, limitOf, type Outcome, type Row } from './run-row.ts';

/** What the process of a row is to do. */
export type Order = {
  readonly rows: string;
  readonly name: string;
  readonly seed: number;
  readonly trials: number;
  /** Where its files go. */
  readonly folder: string;
};

/** What it sends: the outcome, or the reason why there is none. */
export type Report = { readonly outcome: Outcome } | { readonly fault: string };

type Options = Pick<Order, 'seed' | 'trials'> & {
  readonly rows?: string;
  /** In seconds: what a row has beyond its limit to be judged and taken down. */
  readonly grace?: number;
  /** Where the folder of its files is made. */
  readonly within?: string;
};

const ROWS = join(import.meta.dirname, 'rows/index.ts');

/** In seconds: how long a row may take to take down what it has built up. */
const CLEANUP_LIMIT_S = 10;

let running: ChildProcess | undefined;

/**
 * Runs a row in a process of its own. Whatever becomes of that process, there is an outcome: one that ends by itself or
 * outlives its time has failed, and nothing of it is left when the next row begins.
 */
export async function runApart(
  row: Row,
  { seed, trials, rows = ROWS, grace = 60, within = tmpdir() }: Options,
): Promise<Outcome> {
  const begun = performance.now();
  const folder = await mkdtemp(join(within, 'user-management-row-'));
  // PostgreSQL runs as another user than root.
  await chmod(folder, 0o755);
  const order: Order = { rows, name: row.name, seed, trials, folder };
  const child = fork(join(import.meta.dirname, 'row-process.ts'), [JSON.stringify(order)], {
    // A group of its own, to be ended as a whole; standard output is the run's.
    detached: true,
    execArgv: [],
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  running = child;
  let report: Report | undefined;
  child.once('message', (sent: Report) => {
    report = sent;
  });
  const limit = limitOf(row) * 60 + grace;
  const exited = once(child, 'exit').then(
    ([code, signal]) => `the row's process has ended with ${code ?? signal}`,
  );
  const late = `the row has not ended after ${Math.round(limit)} seconds`;
  const end = await Promise.race([exited, sleep(limit * 1000, late, { ref: false })]);
  endGroup(child);
  await exited;
  running = undefined;
  // What it has not unmounted stays.
  await rm(folder, { recursive: true, maxRetries: 10 }).catch(() => {});
  if (report && 'outcome' in report) return report.outcome;
  return failedOutcome(row, seed, (performance.now() - begun) / 1000, report?.fault ?? end);
}

/** Ends the row that is running, with what it has built up. */
export async function endRow(): Promise<void> {
  const child = running;
  if (!child) return;
  child.kill('SIGTERM');
  await Promise.race([once(child, 'exit'), sleep(CLEANUP_LIMIT_S * 1000, undefined, { ref: false })]);
  endGroup(child);
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // Nothing is left of it.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
