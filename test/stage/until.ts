// Not the global one, which a test can simulate.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What a busy machine may add to a limit, in seconds. It is below the times that a fault takes: a collector that hangs
 * delays an exit by 8 seconds, and a drain takes 30.
 */
export const BUSY_S = 5;

/** The longest wait in seconds, and the pause between two looks in milliseconds. */
export type Patience = { readonly seconds?: number; readonly every?: number };

/** A value, or undefined or false while there is none. */
export type Look<Value> = () => Value | undefined | false | Promise<Value | undefined | false>;

/** The first value of `look` other than undefined and false. Throws if there is none in time. */
export async function until<Value>(
  what: string,
  look: Look<Value>,
  { seconds = 30, every = 20 }: Patience = {},
): Promise<Value> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`not within ${seconds} seconds: ${what}`);
    await sleep(every);
  }
}

/** Repeats some work until the function that it returns is called, which resolves after the last time. */
export function repeat(work: () => Promise<unknown>): () => Promise<void> {
  let isStopped = false;
  const repeating = (async () => {
    while (!isStopped) await work();
  })();
  return async () => {
    isStopped = true;
    await repeating;
  };
}

/** Makes so many at the same time, and resolves with all of them. */
export const times = <Value>(count: number, make: (index: number) => Promise<Value>): Promise<Value[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

/** The value of a promise, and the milliseconds until it resolves. */
export async function timed<Value>(done: Promise<Value>) {
  const begun = performance.now();
  return { value: await done, milliseconds: performance.now() - begun };
}
