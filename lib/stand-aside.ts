/**
 * Waits without being a request in flight, for so many milliseconds at most: `over` is aborted then, and earlier when the
 * caller has left, the drain begins, or a function's time is nearly up.
 */
export type StandAside = <Result>(
  milliseconds: number,
  wait: (over: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** Where there is no host that would end the wait earlier. */
export const standAside: StandAside = async (milliseconds, wait) => {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), milliseconds);
  try {
    return await wait(over.signal);
  } finally {
    clearTimeout(timer);
  }
};
