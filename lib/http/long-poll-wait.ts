/**
 * Waits without being a request in flight, for at most `milliseconds`. `over` is aborted then, and earlier if the
 * client disconnects, the drain begins, or a function's time is nearly up.
 */
export type WaitUncounted = <Result>(
  milliseconds: number,
  wait: (over: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** The wait without a host, which could end it earlier. */
export const waitUncounted: WaitUncounted = async (milliseconds, wait) => {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), milliseconds);
  try {
    return await wait(over.signal);
  } finally {
    clearTimeout(timer);
  }
};
