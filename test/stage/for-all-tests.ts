import { beforeAll } from 'vitest';

/** What is started for tests, and has to be ended. */
type Started = { stop(): unknown } | { remove(): unknown };

/**
 * Starts something for all tests of a file or of a `describe`: before them, and it ends after them. `start` is called at
 * the start, so that it can use what was started before.
 */
export function forAllTests<Thing extends Started>(start: () => Promise<Thing>): Thing {
  const thing = {} as Thing;
  beforeAll(async () => {
    const started = await start();
    Object.defineProperties(thing, Object.getOwnPropertyDescriptors(started));
    return () => ('stop' in started ? started.stop() : started.remove());
  }, 120_000);
  return thing;
}
