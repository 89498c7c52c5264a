import middy from '@middy/core';
import httpErrorHandler from '@middy/http-error-handler';
import type { GatewayEvent, GatewayResult, Handler, Invocation } from './gateway.ts';
import { DEADLINE_MARGIN, refuseAtDeadline, timeUntilDeadline, withDeadline } from './middleware/deadline.ts';
import { head } from './middleware/head.ts';
import type { Middleware, RequestContext } from './middleware/middleware.ts';
import { noSniffing } from './middleware/no-sniffing.ts';
import { problems } from './middleware/problems.ts';
import { requestId, requestIdOf } from './middleware/request-id.ts';
import { logServed } from './observability/request-served.ts';
import type { Problem } from './problem.ts';
import { withinRequest } from './request-scope.ts';
import type { BaseService } from './service.ts';

/** Answers a request that has passed all checks. */
export type Answer = (event: GatewayEvent, context: RequestContext) => Promise<GatewayResult>;

/** What stands between a request and its answer. */
export type Pipeline = {
  /** The endpoint's route; absent where no endpoint answers. */
  readonly route?: { readonly path: string; readonly kind: 'operation' | 'probe' };
  /** In the order in which a request is refused. */
  readonly checks?: readonly Middleware[];
  readonly answer: Answer;
};

/** The one middy stack: what every response needs, around the checks, around the answer. */
export function serve({ settings, log, tracing }: BaseService, pipeline: Pipeline): Handler {
  const { route, checks = [], answer } = pipeline;
  const header = settings.requestIdHeader;
  const isProbe = route?.kind === 'probe';
  const withinServerSpan = isProbe ? undefined : tracing?.withinServerSpan;
  const isLogged = settings.logLevel === 'debug' && !isProbe;
  const stack = middy(answer as never, {
    timeoutEarlyInMillis: DEADLINE_MARGIN,
    timeoutEarlyResponse: refuseAtDeadline,
  });
  const outer = [head(), requestId(header), noSniffing(), httpErrorHandler({ logger: false }), problems(log)];
  stack.use([...outer, ...checks.map(withDeadline)] as never);
  const runStack = stack as unknown as (
    event: GatewayEvent,
    context: RequestContext,
  ) => Promise<GatewayResult>;

  return (event, invocation) => {
    const context = contextOf(invocation);
    const scope = {
      requestId: requestIdOf(event.headers[header.toLowerCase()]),
      answeredBy: performance.now() + timeUntilDeadline(context),
    };
    const run = () => runStack(event, context);
    const answered = isLogged ? () => logServed(log, event, route?.path, run) : run;
    const traced = withinServerSpan && (() => withinServerSpan(event, route?.path, answered));
    return withinRequest(scope, traced ?? answered);
  };
}

/** Answers every request with this refusal. */
export function refuseWith(base: BaseService, problem: Problem): Handler {
  return serve(base, { answer: () => Promise.reject(problem) });
}

/** A context of the request's own, so that nothing is left on the one that AWS Lambda passes in. */
function contextOf(invocation: Invocation | undefined): RequestContext {
  if (typeof invocation?.getRemainingTimeInMillis !== 'function') return {};
  return { getRemainingTimeInMillis: () => invocation.getRemainingTimeInMillis?.() ?? 0 };
}
