import { AsyncLocalStorage } from 'node:async_hooks';

/** The request being served: its ID, and by when its statements have to be done (of `performance.now()`). */
export type RequestScope = { readonly requestId: string; statementsUntil?: number };

const scopes = new AsyncLocalStorage<RequestScope>();

/** Runs `serve` with `scope` as the request being served, also in all that it awaits. */
export function withinRequest<Result>(scope: RequestScope, serve: () => Result): Result {
  return scopes.run(scope, serve);
}

/** The request being served; undefined outside of one. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore();
}
