import { ChurningSet } from '../../churning-set.ts';

/** In milliseconds: so much later than its time something may be given up. */
const TICK = 20;

/** Something that waits, and until when: a moment of `performance.now()`. */
type Waiting = { readonly until: number; readonly giveUp: () => void };

/** What waits, each for a time of its own. */
export type TimeLimits = {
  add(waiting: Waiting): void;
  delete(waiting: Waiting): void;
};

/**
 * Gives up what has waited for too long. One timer for all: one for each statement would be set and cleared at every
 * request. `onTick` is called meanwhile, and as long as it gives true.
 */
export function createTimeLimits(onTick: () => boolean): TimeLimits {
  const all = new ChurningSet<Waiting>();
  const startLooking = lookingWhile(() => {
    const now = performance.now();
    for (const waiting of all) if (waiting.until <= now) waiting.giveUp();
    return onTick() || all.size > 0;
  });

  return {
    add(waiting) {
      all.add(waiting);
      startLooking();
    },
    delete: (waiting) => void all.delete(waiting),
  };
}

/** Gives what starts to look at what waits, unless that has been started: again and again, until `look` gives false. */
export function lookingWhile(look: () => boolean): () => void {
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    if (look()) return;
    clearInterval(timer);
    timer = undefined;
  }

  return () => {
    timer ??= setInterval(tick, TICK).unref();
  };
}
