import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger } from '../lab/ledger/ledger.ts';
import { NO_FIGURES, openStage, type Stage } from '../lab/stage/stage.ts';

/** A fault, and what must be seen while and after it is brought about. */
export type Row = {
  readonly name: string;
  readonly promise: string;
  readonly trials: number;
  /** How many a run of five minutes makes; a row without it is left to the whole run. */
  readonly brief?: number;
  /** In minutes: a row that takes longer has failed; 10 by default. */
  readonly minutes?: number;
  readonly postgres?: Parameters<typeof openStage>[0]['postgres'];
  /** Whether its histories are searched in the model of the feed. */
  readonly searchesModel?: boolean;
  run(stage: Stage): Promise<void>;
};

/** What is printed of a row, in seconds, milliseconds and megabytes. */
export type Outcome = ReturnType<typeof outcomeOf> & { readonly passed: boolean };

export const limitOf = ({ minutes = 10 }: Row): number => minutes;

/** Runs a row on a stage of its own, and then asks the oracle. A row that made no trial has failed. */
export async function runRow(
  row: Row,
  options: Pick<Parameters<typeof openStage>[0], 'seed' | 'trials' | 'searchesModel'>,
): Promise<Outcome> {
  const begun = performance.now();
  const stage = await openStage({ ...options, ...(row.postgres && { postgres: row.postgres }) });
  open = stage;
  try {
    await Promise.race([row.run(stage), refuseAfter(limitOf(row))]);
    await stage.judge();
  } catch (error) {
    stage.faults.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  stage.faults.push(...(await stage.close()));
  open = undefined;
  stage.claim('a trial was made', stage.figures.trials > 0);
  const outcome = outcomeOf(row, stage, (performance.now() - begun) / 1000);
  return { ...outcome, passed: stage.faults.length === 0 };
}

let open: Stage | undefined;

/** Takes down what a row that is cut off has built up. */
export async function abandonRow(): Promise<void> {
  await open?.close();
}

/** What is printed for a row without an outcome of its own. */
export function failedOutcome(row: Row, seed: number, seconds: number, fault: string): Outcome {
  const nothing = { figures: NO_FIGURES, ledgers: [], seed };
  return { ...outcomeOf(row, { ...nothing, faults: [fault] }, seconds), passed: false };
}

async function refuseAfter(minutes: number): Promise<never> {
  await sleep(minutes * 60_000, undefined, { ref: false });
  throw new Error(`the row has not ended after ${Math.round(minutes * 60)} seconds`);
}

function outcomeOf(
  { name }: Row,
  { figures, faults, ledgers, seed }: Pick<Stage, 'figures' | 'faults' | 'ledgers' | 'seed'>,
  seconds: number,
) {
  const all = new Ledger();
  for (const { entries } of ledgers) for (const entry of entries) all.enter(entry);
  return {
    row: name,
    seed,
    trials: figures.trials,
    sent: all.entries.length,
    ok: all.successesAfter(0).length,
    refused_by_status: all.refusedByStatus(),
    lost: figures.lost,
    in_doubt: all.inDoubt.length,
    recovery_seconds: rounded(figures.recoverySeconds, 3),
    longest_response_ms: rounded(all.longestResponse(), 0),
    memory_change_mb: rounded(figures.memoryChange, 1),
    model_windows: figures.windows,
    seconds: rounded(seconds, 1),
    faults: faults as readonly string[],
  };
}

const rounded = (value: number, digits: number) => Number(value.toFixed(digits));
