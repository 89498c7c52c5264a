/** The value of a promise, and the milliseconds until it resolves. */
export async function timed<Value>(done: Promise<Value>) {
  const begun = performance.now();
  return { value: await done, milliseconds: performance.now() - begun };
}
