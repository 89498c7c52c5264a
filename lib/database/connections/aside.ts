import { fewAtOnce } from '../../few-at-once.ts';
import { unavailable } from '../../problem.ts';
import type { ExclusiveConnections } from './exclusive.ts';
import { outOfTime, type Way } from './way.ts';

type Options = {
  /** How many are on the way at once. */
  readonly most: number;
  /** How many may wait for that, nearly until their time is up: they have been sent before. */
  readonly mostWaiting: number;
};

/** In milliseconds: with less time left it is not sent any more, for it would hardly be answered. */
const LEAST_LEFT = 300;

/**
 * A part of these connections, for statements that wait for a lock that somebody keeps: with five callers who changed a user
 * whose row was locked for four seconds, or created one with an address that somebody had written and not committed, they had
 * all of the connections that creates with a key, batches and the changes have.
 */
export function asideOf(connections: ExclusiveConnections, { most, mostWaiting }: Options): Way {
  const turns = fewAtOnce(most, 'too many wait for locks');

  return {
    async send(text, values, deadline) {
      if (turns.waitingCount >= mostWaiting) throw unavailable('too many wait for locks');
      const longest = deadline - LEAST_LEFT - performance.now();
      if (longest <= 0) throw outOfTime();
      return turns.run(longest, () => connections.sendPatiently(text, values, deadline));
    },
    get waitingCount() {
      return turns.waitingCount;
    },
    // They are in nobody's way.
    isCrowded: () => false,
    // Whoever has waited is sent then, and rejected.
    cancel: connections.cancel,
  };
}
