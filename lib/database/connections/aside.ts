import { fewAtOnce } from '../../few-at-once.ts';
import { unavailable } from '../../problem.ts';
import type { Way } from './way.ts';

type Options = {
  /** How many are on the way at once. */
  readonly most: number;
  /** How many may wait for that, nearly until their time is up: they have been sent before. */
  readonly mostWaiting: number;
};

/** In milliseconds: with less time left it is not sent any more, for PostgreSQL would go on when we have given up. */
const LEAST_LEFT = 500;

/**
 * A part of another way, for statements that wait for a lock that somebody keeps: with five callers who change a user whose
 * row was locked for four seconds they had all of the connections that creates with a key, batches and the changes have.
 */
export function asideOf(way: Way, { most, mostWaiting }: Options): Way {
  const turns = fewAtOnce(most, 'too many wait for locks');

  return {
    async send(text, values, deadline) {
      if (turns.waitingCount >= mostWaiting) throw unavailable('too many wait for locks');
      return turns.run(deadline - LEAST_LEFT - performance.now(), () => way.send(text, values, deadline));
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
