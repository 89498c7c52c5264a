import { expect } from 'vitest';
import type { BuiltHost } from './built-service.ts';
import { endedBy } from './shutdown.ts';
import { BUSY_S } from './until.ts';

/** Expects that SIGTERM ends a process in order, within this many seconds if the machine is quiet. */
export async function expectEndInOrder(
  host: Pick<BuiltHost, 'signal' | 'exited'>,
  seconds: number,
): Promise<void> {
  const { seconds: taken, ...exit } = await endedBy('SIGTERM', host);
  expect(exit).toEqual({ code: 0, signal: null });
  expect(taken).toBeLessThan(seconds + BUSY_S);
}
