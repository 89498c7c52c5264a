import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Variables } from '../../lib/settings/settings.ts';
import { builtHost } from './build.ts';
import { START_MEMORY, START_OPTIONS } from './start-command.ts';
import { until } from './until.ts';

// For tests here, so that a build is no part of the time of whichever test comes first. Other programs build when they start
// the first host: to load them does nothing.
if (process.env.VITEST) await builtHost();

// The options of `npm start`, and no more, so that users have what is measured: source maps cost 0.5 ms a stack.
const MEMORY = Object.fromEntries(START_MEMORY.map((setting) => setting.split('=')));

// None outlives the tests, however they end.
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => void child.kill('SIGKILL')));

/** A line of standard output, parsed. */
export type Line = Readonly<Record<string, unknown>>;

/** How a process ended. */
export type Exit = { readonly code: number | null; readonly signal: string | null };

/** How a host is started, where that is not as usual. */
export type HostOptions = {
  /** Where its standard output goes in place of a file, and how that is read. */
  readonly output?: { readonly writeEnd: number; read(): string };
  /** A command that runs it, such as one that sets limits; it has to become the host (`exec`). */
  readonly runBy?: readonly string[];
};

/** A running built host. */
export type BuiltHost = Awaited<ReturnType<typeof startBuiltHost>>;

/**
 * Starts the built host as a process of its own, with no other environment than `variables`. What it prints goes
 * to files, so that nothing of it is lost, however the process ends.
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
    env: { ...MEMORY, ...variables },
    stdio: ['ignore', standardOutput, standardError],
  });
  running.add(child);
  const exited = once(child, 'exit').then(([code, signal]): Exit => ({ code, signal }));
  closeSync(standardOutput);
  closeSync(standardError);

  const errors = () => readFileSync(errorFile, 'utf8');
  const printed = () => (output ? output.read() : readFileSync(outputFile, 'utf8'));
  const isAlive = () => child.exitCode === null && child.signalCode === null;

  /** Whole lines only: the last one may still be on its way. */
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
    /** What has been logged so far, or those events of it that have this name. */
    events,
    /** The spans printed so far. */
    spans: () => lines().filter(({ span_id, event }) => span_id !== undefined && event === undefined),
    /** Its address, once it listens; in whichever format it says so. */
    async untilListening(): Promise<string> {
      const port = await find('its port', () => /\blistening\b.*\bport"?[=:](\d+)/.exec(printed())?.[1]);
      return `http://127.0.0.1:${port}`;
    },
    /** The first event of this name. */
    untilEvent: (name: string) => find(`the event ${name}`, () => events(name)[0]),
    signal: (name: NodeJS.Signals) => child.kill(name),
    /** Ends it in whatever state it is, and removes its files. */
    async remove(): Promise<void> {
      if (isAlive()) child.kill('SIGKILL');
      await exited;
      running.delete(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
