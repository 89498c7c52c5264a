import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { proofRow } from '../stage/proof-row.ts';
import type { openStage, Stage } from './stage/stage.ts';

/** Something that is tried, and the promise that it keeps or breaks. Its file has its name. */
export type Experiment<Options extends ParseArgsOptionsConfig = ParseArgsOptionsConfig> = {
  /** A sentence. */
  readonly promise: string;
  /** How long it takes on two cores. */
  readonly takes: string;
  /** What it needs apart from Node 24 and PostgreSQL, which the project brings. */
  readonly needs?: string;
  /** The options of its command line. Without them `words` has the command line as it is. */
  readonly options?: Options;
  /** Carries it out, and resolves with whether the promise was kept. */
  run(lab: Lab<Options>): Promise<boolean>;
};

/** What every experiment is given. */
export type Lab<Options extends ParseArgsOptionsConfig = ParseArgsOptionsConfig> = {
  readonly options: ReturnType<typeof parseArgs<{ options: Options }>>['values'];
  readonly words: readonly string[];
  print(line: string): void;
  /** Prints a row for the table in test/README.md. */
  printRow(figure: string, goal: string): void;
  /** Undoes something at the end, after a failure and after a signal, too; the latest first. */
  defer(undo: () => unknown): void;
  /** Opens a stage, which is closed at the end. */
  openStage(options: Parameters<typeof openStage>[0]): Promise<Stage>;
};

/** Gives `run` the types of the options. */
export function defineExperiment<const Options extends ParseArgsOptionsConfig>(
  experiment: Experiment<Options>,
): Experiment<Options> {
  return experiment;
}

/** Carries an experiment out and ends this process: with 0 if the promise was kept, otherwise with 1. */
export async function carryOut({ options, run }: Experiment, words: readonly string[]): Promise<never> {
  const undoing = new AsyncDisposableStack();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => void undoing.disposeAsync().finally(() => process.exit(1)));
  }
  const defer = (undo: () => unknown) => undoing.defer(async () => void (await undo()));
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  let isKept = false;
  try {
    isKept = await run({
      options: options ? parseArgs({ args: words, options }).values : {},
      words,
      print,
      printRow: (figure, goal) => print(proofRow(figure, goal)),
      defer,
      async openStage(given) {
        const { openStage } = await import('./stage/stage.ts');
        const stage = await openStage(given);
        defer(stage.close);
        return stage;
      },
    });
  } finally {
    await undoing.disposeAsync();
  }
  process.exit(isKept ? 0 : 1);
}

/** A number that an option has; throws for a text that is not one. */
export function numberIn(option: string, text: string): number {
  const number = Number(text);
  if (Number.isFinite(number)) return number;
  throw new Error(`--${option} takes a number`);
}
