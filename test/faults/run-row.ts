import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger } from '../lab/ledger/ledger.ts';
import { noFigures, openStage, type Stage, type Totals } from '../lab/stage/stage.ts';

/** A fault, and what must be seen while and after it is brought about. */
export type Row = {
  readonly name: string;
  /** What is promised, in a sentence. */
  readonly promise: string;
  /** How many trials a whole run makes. */
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

/** In minutes; no row but those that say so takes as long. */
const DEFAULT_LIMIT_MINUTES = 10;

/** How long a row may take, in minutes. */
export const limitOf = ({ minutes = DEFAULT_LIMIT_MINUTES }: Row): number => minutes;

/** Runs a row on a stage of its own, and then asks the oracle. A row that made no trial has failed. */
export async function runRow(
  row: Row,
  options: Pick<Parameters<typeof openStage>[0], 'seed' | 'trials' | 'searchesModel'>,
): Promise<Outcome> {
  const begun = performance.now();
  const stage = await openStage({
    ...options,
    ...(row.postgres && { postgres: row.postgres }),
  });
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
  const nothing = { figures: noFigures(), ledgers: [], totals: [], seed };
  return { ...outcomeOf(row, { ...nothing, faults: [fault] }, seconds), passed: false };
}

async function refuseAfter(minutes: number): Promise<never> {
  await sleep(minutes * 60_000, undefined, { ref: false });
  throw new Error(`the row has not ended after ${Math.round(minutes * 60)} seconds`);
}

function outcomeOf(
  { name }: Row,
  {
    figures,
    faults,
    ledgers,
    totals,
    seed,
  }: Pick<Stage, 'figures' | 'faults' | 'ledgers' | 'totals' | 'seed'>,
  seconds: number,
) {
  const counted = [...ledgers.map(totalsOf), ...totals];
  const sum = (of: (one: Totals) => number) => counted.reduce((total, one) => total + of(one), 0);
  const refused: Record<string, number> = {};
  for (const { refused_by_status } of counted) {
    for (const [status, count] of Object.entries(refused_by_status)) {
      if (count > 0) refused[status] = (refused[status] ?? 0) + count;
    }
  }
  return {
    row: name,
    seed,
    trials: figures.trials,
    sent: sum(({ sent }) => sent),
    ok: sum(({ ok }) => ok),
    refused_by_status: refused,
    lost: figures.lost + sum(({ lost = 0 }) => lost),
    in_doubt: ledgers.reduce((total, ledger) => total + ledger.inDoubt.length, 0),
    recovery_seconds: rounded(figures.recoverySeconds, 3),
    longest_response_ms: rounded(Math.max(0, ...counted.map((one) => one.longest_response_ms)), 0),
    memory_change_mb: rounded(figures.memoryChange, 1),
    exits: figures.exits,
    model_windows: figures.windows,
    seconds: rounded(seconds, 1),
    faults: faults as readonly string[],
  };
}

/** What is lost is found when the books are checked. */
function totalsOf(ledger: Ledger): Totals {
  return {
    sent: ledger.entries.length,
    ok: ledger.entries.filter(({ status }) => status >= 200 && status < 300).length,
    refused_by_status: ledger.refusedByStatus(),
    longest_response_ms: ledger.longestResponse(),
  };
}

const rounded = (value: number, digits: number) => Number(value.toFixed(digits));
