/** In milliseconds. A longer timer fires at once. */
export const MAX_TIMER_MS = 2_147_483_647;

type Outer = AbortSignal | null | undefined;

/**
 * The result of `work`. After the time, or when `outer` aborts, it is a rejection, also if `work` ignores its signal.
 * `AbortSignal.timeout` would keep each request in memory until its time has passed, and some browsers lack `any`.
 */
export async function withTimeLimit<Value>(
  milliseconds: number,
  outer: Outer,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  let end = (_: unknown) => {};
  const expire = () => end(Object.assign(new Error('no response in time'), { name: 'TimeoutError' }));
  const leave = () => end(outer?.reason);
  const timer = setTimeout(expire, milliseconds);
  outer?.addEventListener('abort', leave);
  try {
    return await new Promise<Value>((resolve, reject) => {
      end = (reason) => {
        reject(reason);
        controller.abort(reason);
      };
      if (outer?.aborted) leave();
      else work(controller.signal).then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', leave);
  }
}

/** Waits, and rejects when the signal aborts. */
export async function sleep(milliseconds: number, signal: Outer): Promise<void> {
  await withTimeLimit(milliseconds, signal, () => new Promise<void>(() => {})).catch((reason) => {
    if (signal?.aborted) throw reason;
  });
}
