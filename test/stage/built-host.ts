import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Variables } from '../../lib/settings/settings.ts';
import { builtHost } from './build.ts';
import { START_OPTIONS, START_VARIABLES } from './start-command.ts';
import { until } from './until.ts';

// For tests here, so that a build does not count to the time of the first test. Other programs build when they start
// the first host: to load them does nothing.
if (process.env.VITEST) await builtHost();

// Exactly the options of `npm start`, so that users have the measured program. Source maps cost 0.5 ms per stack.
const VARIABLES = Object.fromEntries(START_VARIABLES.map((setting) => setting.split('=')));

// No process outlives the tests.
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => void child.kill('SIGKILL')));

/** A parsed line of standard output. */
export type Line = Readonly<Record<string, unknown>>;

/** The end of a process. */
export type Exit = { readonly code: number | null; readonly signal: string | null };

/** Differences from the usual start of a host. */
export type HostOptions = {
  /** The target of standard output instead of a file, and a function that reads it. */
  readonly output?: { readonly writeEnd: number; read(): string };
  /** A command that runs the host, such as one that sets limits. It must become the host (`exec`). */
  readonly runBy?: readonly string[];
};

/** A running built host. */
export type BuiltHost = Awaited<ReturnType<typeof startBuiltHost>>;

/**
 * Starts the built host as a process of its own, with exactly the environment `variables`. Its output goes to files, so
 * that nothing of it is lost in any kind of end.
 */
export async function startBuiltHost(variables: Variables, { output, runBy = [] }: HostOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-host-'));
  const [outputFile, errorFile] = [join(folder, 'output'), join(folder, 'error')];
  const [standardOutput, standardError] = [
    output?.writeEnd ?? openSync(outputFile, 'a'),
    openSync(errorFile, 'a'),
  ];
  const main = await builtHost();
  const [command = '', ...rest] = [...runBy, process.execPath, ...START_OPTIONS, main];
  const child = spawn(command, rest, {
    env: { ...VARIABLES, ...variables },
    stdio: ['ignore', standardOutput, standardError],
  });
  running.add(child);
  const exited = once(child, 'exit').then(([code, signal]): Exit => ({ code, signal }));
  closeSync(standardOutput);
  closeSync(standardError);

  const errors = () => readFileSync(errorFile, 'utf8');
  const printed = () => (output ? output.read() : readFileSync(outputFile, 'utf8'));
  const isAlive = () => child.exitCode === null && child.signalCode === null;

  /** Complete lines only. The last line may still be incomplete. */
  const lines = (): readonly Line[] =>
    printed()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const events = (name?: string) =>
    lines().filter(({ event }) => event !== undefined && (name === undefined || event === name));

  const find = <Found>(what: string, look: () => Found | undefined): Promise<Found> =>
    until(what, () => {
      const found = look();
      if (found === undefined && !isAlive()) throw new Error(`it ended before ${what}: ${errors()}`);
      return found;
    });

  return {
    outputFile,
    processId: child.pid as number,
    exited,
    isAlive,
    printed,
    errors,
    lines,
    /** The events that were logged so far, or those with this name. */
    events,
    /** The spans that were printed so far. */
    spans: () => lines().filter(({ span_id, event }) => span_id !== undefined && event === undefined),
    /** Its URL as soon as it listens, in either log format. */
    async untilListening(): Promise<string> {
      const port = await find('its port', () => /\blistening\b.*\bport"?[=:](\d+)/.exec(printed())?.[1]);
      return `http://127.0.0.1:${port}`;
    },
    /** The first event with this name. */
    untilEvent: (name: string) => find(`the event ${name}`, () => events(name)[0]),
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
