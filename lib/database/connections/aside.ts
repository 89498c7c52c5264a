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
  const inTurn = fewAtOnce(most, 'too many wait for locks');
  let waitingCount = 0;

  return {
    send(text, values, deadline) {
      if (waitingCount >= mostWaiting) return Promise.reject(unavailable('too many wait for locks'));
      waitingCount += 1;
      let isWaiting = true;
      const turn = inTurn(Math.min(longestWait, deadline - performance.now()), () => {
        endWait();
        return way.send(text, values, deadline);
      });
      return turn.finally(endWait);

      function endWait(): void {
        if (isWaiting) waitingCount -= 1;
        isWaiting = false;
      }
    },
    get waitingCount() {
      return waitingCount;
    },
    // They are in nobody's way.
    isCrowded: () => false,
    // Whoever has waited is sent then, and rejected.
    cancel: way.cancel,
  };
}
