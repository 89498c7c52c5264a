import { AsyncLocalStorage } from 'node:async_hooks';

/** The request being served. Times are those of `performance.now()`. */
export type RequestScope = {
  readonly requestId: string;
  /** Time at which the request is answered in any case; infinity except in a function. */
  readonly answeredBy: number;
  statementsUntil?: number;
};

const scopes = new AsyncLocalStorage<RequestScope>();

/**
 * Runs `serve` with `scope` as the request being served, also in everything that it awaits. A timer or a write that a
 * request starts runs within that scope, too. `AsyncResource.bind` takes it out.
 */
export function withinRequest<Result>(scope: RequestScope, serve: () => Result): Result {
  return scopes.run(scope, serve);
}

/** The request being served; undefined outside of a request. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore();
}
