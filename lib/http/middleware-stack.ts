import middy from '@middy/core';
import httpErrorHandler from '@middy/http-error-handler';
import { logServed } from '../observability/request-log.ts';
import type { BaseService } from '../service.ts';
import type { GatewayEvent, GatewayResult, Handler, Invocation } from './gateway.ts';
import { DEADLINE_MARGIN_MS, getTimeUntilDeadline, refuseAtDeadline } from './invocation-deadline.ts';
import { completeResponse } from './middleware/complete-response.ts';
import { writeProblems } from './middleware/problems.ts';
import { chooseRequestId } from './middleware/request-id.ts';
import type { Problem } from './problem.ts';
import { withinRequest } from './request-scope.ts';
import type { Route } from './route.ts';

/** Checks a request and responds to it. `signal` is aborted at the deadline of the invocation. */
export type Respond = (
  event: GatewayEvent,
  invocation: Invocation,
  options: { readonly signal: AbortSignal },
) => GatewayResult | Promise<GatewayResult>;

/**
 * Creates a handler: the scope of a request, its span and log line, and the middy stack. `route` is that of the endpoint;
 * absent if no endpoint serves the request.
 */
export function createHandler(service: BaseService, respond: Respond, route?: Route): Handler {
  const field = service.settings.requestIdHeader.toLowerCase();
  const stack = createStack(service, respond);
  return (event, invocation) => {
    const context = createContext(invocation);
    const requestId = chooseRequestId(event.headers[field]);
    const scope = { requestId, answeredBy: readDeadline(context) };
    return withinRequest(scope, () => observe(service, route, event, () => stack(event, context)));
  };
}

/** Creates a handler that refuses every request with this problem. */
export function refuseWith(service: BaseService, problem: Problem): Handler {
  return createHandler(service, () => Promise.reject(problem));
}

/**
 * The one middy stack: what every response needs, around the checks and the response, which end at the deadline of the
 * invocation. middy's own runner creates an AbortController for each request. A runner without it and without promises
 * saved 4 % of a read at most, and was removed.
 */
function createStack({ settings, log }: BaseService, respond: Respond) {
  const stack = middy(respond as never, {
    timeoutEarlyInMillis: DEADLINE_MARGIN_MS,
    timeoutEarlyResponse: refuseAtDeadline,
  });
  const complete = completeResponse(settings.requestIdHeader);
  // On the way out, middy runs the last one first.
  stack.use([
    { after: complete, onError: complete },
    httpErrorHandler({ logger: false }),
    { onError: writeProblems(log) },
  ] as never);
  return stack as unknown as (event: GatewayEvent, context: Invocation) => Promise<GatewayResult>;
}

/** Serves a request within its span and, at level `debug`, with its log line. A probe has neither. */
function observe(
  { settings, log, tracing }: BaseService,
  route: Route | undefined,
  event: GatewayEvent,
  serve: () => Promise<GatewayResult>,
): Promise<GatewayResult> {
  if (route?.kind === 'probe') return serve();
  const logged = settings.logLevel === 'debug' ? () => logServed(log, event, route?.path, serve) : serve;
  return tracing ? tracing.serverSpans.within(event, route?.path, logged) : logged();
}

/** What the stack reads of the context of AWS Lambda. Other callers of a handler may pass anything. */
function createContext(invocation: Invocation | undefined): Invocation {
  if (typeof invocation?.getRemainingTimeInMillis !== 'function') return {};
  return { getRemainingTimeInMillis: () => invocation.getRemainingTimeInMillis?.() ?? 0 };
}

/**
 * As a time of `performance.now()`. Without a deadline the clock is not read, because that takes as long as all the
 * rest.
 */
function readDeadline(context: Invocation): number {
  const left = getTimeUntilDeadline(context);
  return left === Number.POSITIVE_INFINITY ? left : performance.now() + left;
}
