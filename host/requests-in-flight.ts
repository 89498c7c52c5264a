import { ChurningSet } from '../lib/churning-set.ts';
import type { GatewayEvent } from '../lib/http/gateway.ts';

export type CountedRequest = Pick<GatewayEvent, 'headers' | 'requestContext'> & {
  cancel(): void;
  /** Calls back when the client disconnects, until the returned function is called. */
  onceDisconnected(onDisconnected: () => void): () => void;
};

/**
 * The requests in flight of one instance, and the drain, which waits until there is none. They are counted here, and
 * nowhere else. Probes are not counted.
 */
export class RequestsInFlight {
  readonly #requests = new ChurningSet<CountedRequest>();
  readonly #waiting = new ChurningSet<CountedRequest>();
  readonly #waits = new ChurningSet<() => void>();
  #onIdle: (() => void) | undefined;
  #drainSince: number | undefined;

  get count(): number {
    return this.#requests.size;
  }

  /** Number of requests in flight that are served: they do not wait for another one or for admission. */
  get servedCount(): number {
    return this.#requests.size - this.#waiting.size;
  }

  get isDraining(): boolean {
    return this.#drainSince !== undefined;
  }

  /** Seconds since the drain began; 0 before. */
  get drainAge(): number {
    return this.#drainSince === undefined ? 0 : (performance.now() - this.#drainSince) / 1000;
  }

  requests(): Iterable<CountedRequest> {
    return this.#requests;
  }

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

  /** Lets a request wait without being counted, unless the drain has begun: see `WaitUncounted`. */
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
    if (this.isDraining) end();
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

  beginDrain(): void {
    this.#drainSince = performance.now();
  }

  /** Ends all waits for changes. The waiting requests are in flight again, and are answered. */
  endWaits(): void {
    for (const end of this.#waits) end();
  }

  /** Resolves when no request is in flight, or after `seconds`, with whether none is. */
  async untilIdle(seconds: number): Promise<boolean> {
    if (this.#requests.size > 0 && seconds > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, seconds * 1000);
      this.#onIdle = resolve;
      await promise;
      clearTimeout(timer);
    }
    return this.#requests.size === 0;
  }

  /** Cancels all requests in flight. Each is counted until it has ended. */
  cancelAll(): void {
    for (const request of this.#requests) request.cancel();
  }
}
