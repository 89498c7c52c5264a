import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Look, type Patience, until } from './until.ts';

// No process outlives the tests.
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => void child.kill('SIGKILL')));

export function isProcessAlive(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch {
    return false;
  }
}

/** A parsed line of standard output. */
export type Line = Readonly<Record<string, unknown>>;

export type Exit = { readonly code: number | null; readonly signal: string | null };

type Options = {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  /** The target of standard output instead of a file, and a function that reads it. */
  readonly output?: { readonly writeEnd: number; read(): string } | undefined;
};

/** Starts a process. Its output goes to files, so that nothing of it is lost in any kind of end. */
export function startProcess([command = '', ...words]: readonly string[], { output, ...options }: Options) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-process-'));
  const [outputFile, errorFile] = [join(folder, 'output'), join(folder, 'error')];
  const standardOutput = output?.writeEnd ?? openSync(outputFile, 'a');
  const standardError = openSync(errorFile, 'a');
  const child = spawn(command, words, { ...options, stdio: ['ignore', standardOutput, standardError] });
  running.add(child);
  const exited = once(child, 'exit').then(([code, signal]): Exit => ({ code, signal }));
  closeSync(standardOutput);
  closeSync(standardError);

  const errors = () => readFileSync(errorFile, 'utf8');
  const printed = () => (output ? output.read() : readFileSync(outputFile, 'utf8'));
  const isAlive = () => child.exitCode === null && child.signalCode === null;

  return {
    outputFile,
    processId: child.pid as number,
    exited,
    isAlive,
    printed,
    errors,
    /** The first value of `look` other than undefined and false. Throws if the process ends before. */
    find: <Found>(what: string, look: Look<Found>, patience?: Patience): Promise<Found> =>
      until(
        what,
        async () => {
          const found = await look();
          if (!found && !isAlive()) throw new Error(`it ended before ${what}: ${errors()}`);
          return found;
        },
        patience,
      ),
    signal: (name: NodeJS.Signals) => child.kill(name),
    /** Ends it in any state, and removes its files. */
    async remove(): Promise<void> {
      if (isAlive()) child.kill('SIGKILL');
      await exited;
      running.delete(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
