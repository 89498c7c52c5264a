import middy from '@middy/core';
import httpErrorHandler from '@middy/http-error-handler';
import type { GatewayEvent, GatewayResult, Handler, Invocation } from './gateway.ts';
import { head } from './middleware/head.ts';
import type { Middleware, RequestContext } from './middleware/middleware.ts';
import { noSniffing } from './middleware/no-sniffing.ts';
import { problems } from './middleware/problems.ts';
import { requestId, requestIdOf } from './middleware/request-id.ts';
import { unavailable } from './problem.ts';
import { withinRequest } from './request-scope.ts';
import type { Service } from './service.ts';

/** Answers a request that has passed all checks. */
export type Answer = (event: GatewayEvent, context: RequestContext) => Promise<GatewayResult>;

/** Milliseconds before the end of an invocation at which it is answered all the same. */
const LAST_CALL = 250;

/** The one middy stack: what every response needs around `checks`, and these around `answer`. */
export function serve(
  service: Pick<Service, 'settings' | 'log'>,
  checks: readonly Middleware[],
  answer: Answer,
): Handler {
  const header = service.settings.requestIdHeader;
  const stack = middy(answer as never, { timeoutEarlyInMillis: LAST_CALL, timeoutEarlyResponse: refuseLate });
  stack.use([
    head(),
    requestId(header),
    noSniffing(),
    httpErrorHandler({ logger: false }),
    problems(service.log),
    ...checks,
  ] as never);
  const run = stack as unknown as (event: GatewayEvent, context: RequestContext) => Promise<GatewayResult>;

  return (event, invocation) => {
    const scope = { requestId: requestIdOf(event.headers[header.toLowerCase()]) };
    return withinRequest(scope, () => run(event, contextOf(invocation)));
  };
}

/** A context of the request's own, so that nothing is left on the one that AWS Lambda passes in. */
function contextOf(invocation: Invocation | undefined): RequestContext {
  if (!invocation?.getRemainingTimeInMillis) return {};
  return { getRemainingTimeInMillis: () => invocation.getRemainingTimeInMillis?.() ?? 0 };
}

function refuseLate(): never {
  throw unavailable('the invocation has run out of time');
}
