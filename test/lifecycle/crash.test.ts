import { expect, test } from 'vitest';
import { startBuiltService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { TIMESTAMP } from '../stage/responses.ts';

/** A defect that a signal causes, in a host that is otherwise as built. */
const brokenBy = (statement: string) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`process.on('SIGUSR2', () => { ${statement} })`)}`,
});

test.each([
  ['an uncaught error', "throw new Error('no mail to ada@example.com')", 'no mail to ***'],
  ['an unhandled rejection', "Promise.reject(new Error('a defect'))", 'a defect'],
  ['a thrown value that is not an Error', "throw 'a text'", 'thrown: a text'],
])(
  '%s ends the process with exit code 1, and its cause is the last line of the log',
  async (_, statement, message) => {
    const service = await forThisTest(startBuiltService, brokenBy(statement));
    service.signal('SIGUSR2');

    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.lines().at(-1)).toEqual({
      timestamp: expect.stringMatching(TIMESTAMP),
      level: 'error',
      event: 'process_crashed',
      cause: { name: 'Error', message, stack: expect.stringContaining(`Error: ${message}`) },
    });
    expect(service.errors()).toBe('');
  },
);
