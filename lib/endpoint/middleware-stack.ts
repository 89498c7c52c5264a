import middy from '@middy/core';
import httpErrorHandler from '@middy/http-error-handler';
import type { GatewayEvent, GatewayResult, Handler, Invocation } from '../http/gateway.ts';
import { type Problem, problemDocument, problemHeaders, toProblem, unavailable } from '../http/problem.ts';
import { chooseRequestId } from '../http/request-id.ts';
import { currentRequest, withinRequest } from '../http/request-scope.ts';
import type { EventLog } from '../observability/event-log.ts';
import { logProblem, logServed } from '../observability/request-log.ts';
import type { BaseService } from '../service.ts';
import type { Route } from './route.ts';

/** Milliseconds before the end of an invocation at which the request is answered in any case. */
const DEADLINE_MARGIN_MS = 250;

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
  return (event, invocation = {}) => {
    const requestId = chooseRequestId(event.headers[field]);
    const left = invocation.getRemainingTimeInMillis?.() ?? Number.POSITIVE_INFINITY;
    const scope = { requestId, answeredBy: performance.now() + Math.max(left - DEADLINE_MARGIN_MS, 0) };
    return withinRequest(scope, () => observe(service, route, event, () => stack(event, invocation)));
  };
}

export function createRefusingHandler(service: BaseService, problem: Problem): Handler {
  return createHandler(service, () => Promise.reject(problem));
}

/**
 * The one middy stack: what every response needs, around the checks and the response, which end at the deadline of the
 * invocation. A runner of our own, without promises, would save 4 % of a read at most.
 */
function createStack({ settings, log }: BaseService, respond: Respond) {
  const stack = middy(respond as never, {
    timeoutEarlyInMillis: DEADLINE_MARGIN_MS,
    timeoutEarlyResponse() {
      throw unavailable('the invocation has run out of time');
    },
  });
  const complete = (request: RequestInStack) => completeResponse(request, settings.requestIdHeader);
  // On the way out, middy runs the last one first.
  stack.use([
    { after: complete, onError: complete },
    httpErrorHandler({ logger: false }),
    { onError: (request: RequestInStack) => writeProblem(request, log) },
  ] as never);
  return stack as unknown as (event: GatewayEvent, context: Invocation) => Promise<GatewayResult>;
}

/** A request in middy's stack. Its middlewares still write the response. */
type RequestInStack = {
  readonly event: GatewayEvent;
  readonly response: {
    readonly statusCode: number;
    readonly headers: Record<string, string>;
    body: string | Buffer;
  };
  error: unknown;
};

/** Completes every response, also that of a problem: its common headers, and the rule for HEAD. */
function completeResponse({ event, response }: RequestInStack, requestIdHeader: string): void {
  const { headers } = response;
  // Clients must not guess another media type than Content-Type.
  headers['X-Content-Type-Options'] = 'nosniff';
  headers[requestIdHeader] = currentRequest()?.requestId ?? '';
  // HEAD is GET without the content, but with its length (RFC 9110 section 9.3.2). A 304 has no content with GET,
  // either.
  if (event.requestContext.http.method !== 'HEAD' || response.statusCode === 304) return;
  headers['Content-Length'] = String(Buffer.byteLength(response.body));
  response.body = '';
}

/** Turns any thrown value into a problem, logs it, and passes it to middy's http-error-handler, which writes it. */
function writeProblem(request: RequestInStack, log: EventLog): void {
  const { rawPath } = request.event;
  const problem = toProblem(request.error);
  logProblem(log, problem, rawPath);
  request.error = {
    statusCode: problem.status,
    message: JSON.stringify(problemDocument(problem, rawPath)),
    headers: problemHeaders(problem),
    expose: true,
  };
}

/** Serves a request within its span and, at level `debug`, with its log line. A probe has neither. */
function observe(
  { settings, log, tracing }: BaseService,
  route: Route | undefined,
  event: GatewayEvent,
  serve: () => Promise<GatewayResult>,
): Promise<GatewayResult> {
  if (route?.isProbe) return serve();
  const logged = settings.logLevel === 'debug' ? () => logServed(log, event, route?.path, serve) : serve;
  return tracing ? tracing.serverSpans.within(event, route?.path, logged) : logged();
}
