import { fewAtOnce } from '../../few-at-once.ts';
import { unavailable } from '../../problem.ts';
import type { Way } from './way.ts';

type Options = {
  /** How many are on the way at once. */
  readonly most: number;
  /** How many may wait for that, and for how many milliseconds. */
  readonly mostWaiting: number;
  readonly longestWait: number;
};

/**
 * A part of another way, for statements that wait for a lock that somebody keeps: with five callers who change a user whose
 * row was locked for four seconds they had all of the connections that creates with a key, batches and the changes have.
 */
export function asideOf(way: Way, { most, mostWaiting, longestWait }: Options): Way {
  const turns = fewAtOnce(most, 'too many wait for locks');

  return {
    async send(text, values, deadline) {
      if (turns.waitingCount >= mostWaiting) throw unavailable('too many wait for locks');
      const longest = Math.min(longestWait, deadline - performance.now());
      return turns.run(longest, () => way.send(text, values, deadline));
    },
    get waitingCount() {
      return turns.waitingCount;
    },
    // They are in nobody's way.
    isCrowded: () => false,
    // Whoever has waited is sent then, and rejected.
    cancel: way.cancel,
  };
}
