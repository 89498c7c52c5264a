import { ChurningSet } from '../lib/churning-set.ts';
import type { GatewayEvent } from '../lib/http/gateway.ts';
import type { WaitUncounted } from '../lib/http/long-poll-wait.ts';

/** Counts the requests in flight, and waits until there are none. */
export type RequestsInFlight = {
  readonly inFlight: number;
  /** The requests in flight. */
  callers(): Iterable<Caller>;
  /** Counts a request until `leave` is called. */
  enter(caller: Caller): RequestInFlight;
  /** Ends all waits for changes, now and from now on. The waiting requests are in flight again, and are answered. */
  endWaits(): void;
  /** Resolves with true when no request is in flight, or with false after `seconds`. */
  untilIdle(seconds: number): Promise<boolean>;
  /** Cancels all requests in flight. Each is counted until it has ended. */
  cancelAll(): void;
};

/** A request that is counted. */
export type RequestInFlight = {
  leave(): void;
  /** Waits without being counted. */
  waitUncounted: WaitUncounted;
};

/** A request, and how to cancel it. */
export type Caller = Pick<GatewayEvent, 'headers' | 'requestContext'> & {
  /** Called by cancelAll. */
  cancel(): void;
  /** Calls back when the client disconnects, until the returned function is called. */
  onceLeft(onLeft: () => void): () => void;
};

/** Creates the record of one instance's requests in flight. */
export function createRequestsInFlight(): RequestsInFlight {
  const inFlight = new ChurningSet<Counted>();
  const waits = new ChurningSet<() => void>();
  let onIdle: (() => void) | undefined;
  let isEndingWaits = false;

  class Counted implements RequestInFlight {
    readonly caller: Caller;

    constructor(caller: Caller) {
      this.caller = caller;
      inFlight.add(this);
    }

    leave(): void {
      inFlight.delete(this);
      if (inFlight.size === 0) onIdle?.();
    }

    async waitUncounted<Result>(milliseconds: number, wait: (over: AbortSignal) => Promise<Result>) {
      const over = new AbortController();
      const end = () => {
        inFlight.add(this);
        over.abort();
      };
      const timer = setTimeout(end, milliseconds);
      const unwatch = this.caller.onceLeft(end);
      waits.add(end);
      if (isEndingWaits) end();
      else this.leave();
      try {
        return await wait(over.signal);
      } finally {
        inFlight.add(this);
        waits.delete(end);
        unwatch();
        clearTimeout(timer);
      }
    }
  }

  return {
    get inFlight() {
      return inFlight.size;
    },
    *callers() {
      for (const { caller } of inFlight) yield caller;
    },
    enter: (caller) => new Counted(caller),
    endWaits() {
      isEndingWaits = true;
      for (const end of waits) end();
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
      for (const { caller } of inFlight) caller.cancel();
    },
  };
}
