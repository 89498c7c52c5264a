import type { GatewayEvent, GatewayResult } from './gateway.ts';
import type { Middleware, RequestContext, RequestInStack, ResponseDraft } from './middleware/middleware.ts';

type Answer = (event: GatewayEvent, context: RequestContext) => GatewayResult | Promise<GatewayResult>;

/** The part of middy's core that an execution mode uses: middy's own way to run a request. */
type Core = {
  readonly middyRequest: (event: GatewayEvent, context: RequestContext) => RequestInStack;
  readonly runRequest: (request: RequestInStack, ...stack: unknown[]) => Promise<GatewayResult>;
};

/**
 * An execution mode of middy (its option `executionMode`). The middlewares run in middy's order. For a request without
 * a deadline, a middleware that finishes synchronously costs no promise, and there is no AbortController, which middy
 * creates for each request. A request with a deadline is run by middy, which can abandon it.
 */
export function atOnce(
  { middyRequest, runRequest }: Core,
  befores: readonly NonNullable<Middleware['before']>[],
  answer: Answer,
  afters: readonly NonNullable<Middleware['after']>[],
  onErrors: readonly NonNullable<Middleware['onError']>[],
  plugin: unknown,
): (event: GatewayEvent, context: RequestContext) => Promise<GatewayResult> {
  return (event, context) =>
    context.getRemainingTimeInMillis
      ? runRequest(middyRequest(event, context), befores, answer, afters, onErrors, plugin)
      : run(event, context);

  async function run(event: GatewayEvent, context: RequestContext): Promise<GatewayResult> {
    const request: RequestInStack = { event, context, response: undefined as never, error: undefined };
    try {
      const passed = pass(request, 0);
      if (passed) await passed;
      const answered = answer(event, context);
      request.response = (answered instanceof Promise ? await answered : answered) as ResponseDraft;
      runAll(afters, request);
    } catch (error) {
      request.error = error;
      request.response = undefined as never;
      runAll(onErrors, request);
    }
    return request.response as GatewayResult;
  }

  function pass(request: RequestInStack, first: number): undefined | Promise<void> {
    for (let next = first; next < befores.length; next += 1) {
      const passed = befores[next]?.(request);
      if (passed) return passed.then(() => pass(request, next + 1));
    }
    return undefined;
  }
}

// Outside of `run`, because an async function stores all of its variables at each call. Three loops took 1.7 of a
// read's 18 KB.
function runAll(middlewares: readonly NonNullable<Middleware['after']>[], request: RequestInStack): void {
  for (const run of middlewares) run(request);
}
