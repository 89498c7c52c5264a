import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context, Span } from '@opentelemetry/api';

/** The request being served. Moments are those of `performance.now()`. */
export type RequestScope = {
  readonly requestId: string;
  /** When it is answered, whatever it still waits for; never, but in a function. */
  readonly answeredBy: number;
  /** By when its statements have to be done. */
  statementsUntil?: number;
  /** Where it is traced: its span, recorded or not, and the context that its caller has sent. */
  traced?: { readonly span: Span; readonly caller: Context };
};

const scopes = new AsyncLocalStorage<RequestScope>();

/** Runs `serve` with `scope` as the request being served, also in all that it awaits. */
export function withinRequest<Result, Given extends unknown[]>(
  scope: RequestScope,
  serve: (...given: Given) => Result,
  ...given: Given
): Result {
  return scopes.run(scope, serve, ...given);
}

/** The request being served; undefined outside of one. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore();
}
