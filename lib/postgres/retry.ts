import { classifyConflict, hasLostConnection, NotSent } from './faults.ts';

/** In milliseconds. */
const FIRST_PAUSE_MS = 4;
const MAX_PAUSE_MS = 250;

/** Why a statement is sent again, and after how many milliseconds. */
export type Retry = {
  readonly reason: 'connection_lost' | NonNullable<ReturnType<typeof classifyConflict>>;
  readonly pause: number;
};

/**
 * How a statement is sent again, after so many attempts have failed, the last one by `fault`; undefined when it must
 * not be. The pause is random, so that conflicting statements do not meet again, and at most twice as long each time. A
 * read whose connection was lost, and a statement that was not sent, are sent once more, elsewhere, without one.
 */
export function retryAfter(fault: unknown, attempts: number, isRead = false): Retry | undefined {
  const isHarmless = fault instanceof NotSent || (isRead && hasLostConnection(fault));
  if (isHarmless && attempts === 1) return { reason: 'connection_lost', pause: 0 };
  const reason = classifyConflict(fault);
  if (!reason) return undefined;
  return { reason, pause: Math.random() * Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), MAX_PAUSE_MS) };
}
