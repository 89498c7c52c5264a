import { AsyncLocalStorage } from 'node:async_hooks';

/** The request being served, as far as its log lines and its deadline need it. */
export type RequestScope = { requestId: string };

const scopes = new AsyncLocalStorage<RequestScope>();

/** Runs `serve` with `scope` as the request being served, also in all that it awaits. */
export function withinRequest<Result>(scope: RequestScope, serve: () => Result): Result {
  return scopes.run(scope, serve);
}

/** The request being served; undefined outside of one. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore();
}
