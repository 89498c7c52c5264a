import { afterEach, beforeAll } from 'vitest';
import type { Breaking } from '../accept/faults.ts';
import { startAcceptable, startBreaking } from '../accept/stage.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { callAs, openFiles, startCommand, variablesFor } from './command.ts';

type CommandOptions = Parameters<typeof startCommand>[2];

/**
 * One service, and one folder for files, for all tests of a file: they exist before the tests, and are removed after
 * them. The command calls this service, unless the variables of a call name another one.
 */
export function acceptableUnderTest() {
  const files = openFiles();
  const service = forAllTests(startAcceptable);
  /** The variables with which the command calls the service. */
  const given: NodeJS.ProcessEnv = {};
  beforeAll(async () => {
    Object.assign(given, await variablesFor(service));
    return files.remove;
  });

  const started: ReturnType<typeof startCommand>[] = [];
  // A command of a failed test would disturb the next tests.
  afterEach(async () => {
    for (const command of started) command.signal('SIGKILL');
    await Promise.all(started.splice(0).map(({ ended }) => ended));
  });

  const start = (
    words: readonly string[],
    variables: NodeJS.ProcessEnv = {},
    options: CommandOptions = {},
  ) => {
    const command = startCommand(words, { ...given, ...variables }, options);
    started.push(command);
    return command;
  };

  return {
    files,
    service,
    variables: given,
    /** Starts the command, which ends with its test. */
    start,
    /** Runs the command to its end. */
    run: (...parameters: Parameters<typeof start>) => start(...parameters).ended,
    /** Writes the cursor of the latest change to a file, and returns its path. */
    async storeHead(name: string): Promise<string> {
      const cursor = files.pathOf(name);
      await start(['export', '--cursor', cursor]).ended;
      return cursor;
    },
    /** The content of the response to a request of another caller; undefined without content. */
    call: (method: string, path?: string, body?: object) => callAs(given, method, path, body),
    /** Starts a proxy that breaks the service, until the test ends. */
    startBreaking: (fault: Breaking) => forThisTest(startBreaking, service.url, fault),
  };
}
