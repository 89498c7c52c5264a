import type { Variables } from '../../lib/settings/environment.ts';
import { builtHost } from './build.ts';
import { type Line, startProcess } from './process.ts';
import { START_OPTIONS, START_VARIABLES } from './start-command.ts';

// For tests here, so that a build does not count to the time of the first test. Other programs build when they start
// the first host: to load them does nothing.
if (process.env.VITEST) await builtHost();

// Exactly the options of `npm start`, so that users have the measured program. Source maps cost 0.5 ms per stack.
const VARIABLES = Object.fromEntries(START_VARIABLES.map((setting) => setting.split('=')));

/** Differences from the usual start of a host. */
export type HostOptions = {
  /** The target of standard output instead of a file, and a function that reads it. */
  readonly output?: Parameters<typeof startProcess>[1]['output'];
  /** A command that runs the host, such as one that sets limits. It must become the host (`exec`). */
  readonly runBy?: readonly string[];
  /** The main file of another host, such as that of the sources or of an earlier version. */
  readonly main?: string;
};

/** A running built host. */
export type BuiltHost = Awaited<ReturnType<typeof startBuiltHost>>;

/** Starts the built host, or that of `main`, with `variables` and those of `npm start` as its whole environment. */
export async function startBuiltHost(variables: Variables, { output, runBy = [], main }: HostOptions = {}) {
  const command = [...runBy, process.execPath, ...START_OPTIONS, main ?? (await builtHost())];
  const host = startProcess(command, { env: { ...VARIABLES, ...variables }, output });
  const { printed, find } = host;

  /** Complete lines only. The last line may still be incomplete. */
  const lines = (): readonly Line[] =>
    printed()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const events = (name?: string) =>
    lines().filter(({ event }) => event !== undefined && (name === undefined || event === name));

  return {
    ...host,
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
  };
}
