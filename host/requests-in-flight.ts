import { ChurningSet } from '../lib/churning-set.ts';
import type { GatewayEvent } from '../lib/http/gateway.ts';

/** A request that can be counted. */
export type CountedRequest = Pick<GatewayEvent, 'headers' | 'requestContext'> & {
  /** Called by cancelAll. */
  cancel(): void;
  /** Calls back when the client disconnects, until the returned function is called. */
  onceDisconnected(onDisconnected: () => void): () => void;
};

/** The requests in flight of one instance. They are counted here, and nowhere else. Probes are not counted. */
export class RequestsInFlight {
  readonly #requests = new ChurningSet<CountedRequest>();
  readonly #waiting = new ChurningSet<CountedRequest>();
  readonly #waits = new ChurningSet<() => void>();
  #onIdle: (() => void) | undefined;
  #isEndingWaits = false;

  get count(): number {
    return this.#requests.size;
  }

  /** Number of requests in flight that are served: they do not wait for another one or for admission. */
  get servedCount(): number {
    return this.#requests.size - this.#waiting.size;
  }

  /** All requests in flight. */
  requests(): Iterable<CountedRequest> {
    return this.#requests;
  }

  /** Counts a request until `leave` is called. */
  enter(request: CountedRequest): void {
    this.#requests.add(request);
  }

  leave(request: CountedRequest): void {
    this.#requests.delete(request);
    this.#waiting.delete(request);
    if (this.#requests.size === 0) this.#onIdle?.();
  }

  /** Counts a request as one that waits for another one of its connection or for admission, until `proceed` is called. */
  wait(request: CountedRequest): void {
    this.#waiting.add(request);
  }

  proceed(request: CountedRequest): void {
    this.#waiting.delete(request);
  }

  /** Lets a request wait without being counted: see `WaitUncounted`. */
  async waitUncounted<Result>(
    request: CountedRequest,
    milliseconds: number,
    wait: (over: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const over = new AbortController();
    const end = () => {
      this.enter(request);
      over.abort();
    };
    const timer = setTimeout(end, milliseconds);
    const unwatch = request.onceDisconnected(end);
    this.#waits.add(end);
    if (this.#isEndingWaits) end();
    else this.leave(request);
    try {
      return await wait(over.signal);
    } finally {
      this.enter(request);
      this.#waits.delete(end);
      unwatch();
      clearTimeout(timer);
    }
  }

  /** Ends all waits for changes, now and from now on. The waiting requests are in flight again, and are answered. */
  endWaits(): void {
    this.#isEndingWaits = true;
    for (const end of this.#waits) end();
  }

  /** Resolves with true when no request is in flight, or with false after `seconds`. */
  untilIdle(seconds: number): Promise<boolean> {
    if (this.#requests.size === 0) return Promise.resolve(true);
    if (seconds <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), seconds * 1000);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** Cancels all requests in flight. Each is counted until it has ended. */
  cancelAll(): void {
    for (const request of this.#requests) request.cancel();
  }
}
