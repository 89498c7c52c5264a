import middy from '@middy/core';
import httpErrorHandler from '@middy/http-error-handler';
import { logServed } from '../observability/request-served.ts';
import type { BaseService } from '../service.ts';
import type { GatewayEvent, GatewayResult, Handler, Invocation } from './gateway.ts';
import { DEADLINE_MARGIN, refuseAtDeadline, timeUntilDeadline, withDeadline } from './middleware/deadline.ts';
import { head } from './middleware/head.ts';
import type { Middleware, RequestContext } from './middleware/middleware.ts';
import { noSniffing } from './middleware/no-sniffing.ts';
import { problems } from './middleware/problems.ts';
import { requestId, requestIdOf } from './middleware/request-id.ts';
import type { Problem } from './problem.ts';
import { withinRequest } from './request-scope.ts';

/** Serves a request that has passed all checks. */
export type Answer = (event: GatewayEvent, context: RequestContext) => GatewayResult | Promise<GatewayResult>;

/** The parts of a handler. */
export type Pipeline = {
  /** The endpoint's route; absent if no endpoint serves the request. */
  readonly route?: { readonly path: string; readonly kind: 'operation' | 'probe' };
  /** In the order in which a request is refused. */
  readonly checks?: readonly Middleware[];
  readonly answer: Answer;
};

/**
 * The one middy stack: what every response needs, around the checks and the answer. middy's own runner creates an
 * AbortController for each request. A runner without it and without promises saved 4 % of a read at most, and was removed.
 */
export function serve({ settings, log, tracing }: BaseService, pipeline: Pipeline): Handler {
  const { route, checks = [], answer } = pipeline;
  const header = settings.requestIdHeader;
  const field = header.toLowerCase();
  const isProbe = route?.kind === 'probe';
  const withinServerSpan = isProbe ? undefined : tracing?.withinServerSpan;
  const isLogged = settings.logLevel === 'debug' && !isProbe;
  const stack = middy(answer as never, {
    timeoutEarlyInMillis: DEADLINE_MARGIN,
    timeoutEarlyResponse: refuseAtDeadline,
  });
  const outer = [head(), requestId(header), noSniffing(), httpErrorHandler({ logger: false }), problems(log)];
  stack.use([...outer, ...checks.map(withDeadline)] as never);
  const runStack = stack as unknown as Serve;
  const logged: Serve = isLogged
    ? (event, context) => logServed(log, event, route?.path, () => runStack(event, context))
    : runStack;
  const traced: Serve = withinServerSpan
    ? (event, context) => withinServerSpan(event, route?.path, () => logged(event, context))
    : logged;

  return (event, invocation) => {
    const context = contextOf(invocation);
    const requestId = requestIdOf(event.headers[field]);
    return withinRequest({ requestId, answeredBy: deadlineOf(context) }, traced, event, context);
  };
}

type Serve = (event: GatewayEvent, context: RequestContext) => Promise<GatewayResult>;

/** A handler that refuses every request with this problem. */
export function refuseWith(base: BaseService, problem: Problem): Handler {
  return serve(base, { answer: () => Promise.reject(problem) });
}

/**
 * As a time of `performance.now()`. Without a deadline the clock is not read, because that takes as long as all the
 * rest.
 */
function deadlineOf(context: RequestContext): number {
  const left = timeUntilDeadline(context);
  return left === Number.POSITIVE_INFINITY ? left : performance.now() + left;
}

/** A context of the request's own, so that nothing remains on the one that AWS Lambda passes in. */
function contextOf(invocation: Invocation | undefined): RequestContext {
  if (typeof invocation?.getRemainingTimeInMillis !== 'function') return {};
  return { getRemainingTimeInMillis: () => invocation.getRemainingTimeInMillis?.() ?? 0 };
}
