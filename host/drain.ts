/** Counts the requests in flight, and waits until there are none. */
export type Drain = {
  readonly inFlight: number;
  /** Counts a request until the function that it returns is called; `cancel` is what cancelAll calls. */
  enter(cancel: () => void): () => void;
  /** Resolves with true once no request is in flight, with false when `seconds` pass first. */
  untilIdle(seconds: number): Promise<boolean>;
  /** Cancels all requests in flight; each is counted until it has ended. */
  cancelAll(): void;
};

/** The requests in flight of one instance. */
export function createDrain(): Drain {
  const inFlight = new Set<{ cancel: () => void }>();
  let onIdle: (() => void) | undefined;

  return {
    get inFlight() {
      return inFlight.size;
    },
    enter(cancel) {
      const request = { cancel };
      inFlight.add(request);
      return () => {
        inFlight.delete(request);
        if (inFlight.size === 0) onIdle?.();
      };
    },
    untilIdle(seconds) {
      if (inFlight.size === 0) return Promise.resolve(true);
      if (seconds <= 0) return Promise.resolve(false);
      return new Promise((resolve) => {
        const timer = setTimeout(() => resolve(false), seconds * 1000);
        onIdle = () => {
          clearTimeout(timer);
          resolve(true);
        };
      });
    },
    cancelAll() {
      for (const { cancel } of inFlight) cancel();
    },
  };
}
