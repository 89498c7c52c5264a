import { ChurningSet } from '../../churning-set.ts';

/** In milliseconds: so much later than its time something may be given up. */
const TICK_MS = 20;

/** Something that waits, and until when: a moment of `performance.now()`. */
type Waiting = { readonly until: number; readonly giveUp: () => void };

/** What waits, each for a time of its own. */
export type TimeLimits = {
  add(waiting: Waiting): void;
  delete(waiting: Waiting): void;
};

/** Gives up what has waited for too long. One timer for all: one per statement would be set and cleared at every request. */
export function createTimeLimits(): TimeLimits {
  const all = new ChurningSet<Waiting>();
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    const now = performance.now();
    for (const waiting of all) if (waiting.until <= now) waiting.giveUp();
    if (all.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    add(waiting) {
      all.add(waiting);
      timer ??= setInterval(tick, TICK_MS).unref();
    },
    delete: (waiting) => void all.delete(waiting),
  };
}
