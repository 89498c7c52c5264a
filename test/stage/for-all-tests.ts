import { beforeAll, onTestFinished } from 'vitest';

/** What is started for tests, and has to be ended. */
type Started = { stop(): unknown } | { remove(): unknown } | { release(): unknown };

function end(started: Started): unknown {
  if ('stop' in started) return started.stop();
  return 'remove' in started ? started.remove() : started.release();
}

/**
 * Starts something for all tests of a file or of a `describe`: before them, and it ends after them. `start` is called at
 * the start, so that it can use what was started before.
 */
export function forAllTests<Thing extends Started>(start: () => Promise<Thing>): Thing {
  const thing = {} as Thing;
  beforeAll(async () => {
    const started = await start();
    Object.defineProperties(thing, Object.getOwnPropertyDescriptors(started));
    return () => end(started);
  }, 120_000);
  return thing;
}

/** Starts something for one test, with these arguments, and ends it after the test. */
export async function forThisTest<Thing extends Started, Given extends unknown[]>(
  start: (...given: Given) => Promise<Thing>,
  ...given: Given
): Promise<Thing> {
  const started = await start(...given);
  onTestFinished(async () => void (await end(started)));
  return started;
}
