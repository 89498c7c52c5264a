import type * as z from 'zod';
import type { ServicePrincipal } from '../auth/principal.ts';
import type { ProtectedService, Service, Services } from '../service.ts';
import type { GatewayEvent, GatewayResult, Handler } from './gateway.ts';
import { type WaitUncounted, waitUncounted as waitWithoutHost } from './long-poll-wait.ts';
import { authenticate } from './middleware/authenticate.ts';
import { timeUntilDeadline } from './middleware/deadline.ts';
import { demandPrecondition } from './middleware/demand-precondition.ts';
import { demandJson } from './middleware/media-type.ts';
import type { Middleware, RequestContext } from './middleware/middleware.ts';
import { pathParameters } from './middleware/path-parameters.ts';
import { receiveBody } from './middleware/receive-body.ts';
import { validate } from './middleware/validate.ts';
import { refuseWith, serve } from './middleware-stack.ts';
import { isUnmodified, NO_PRECONDITIONS, type Preconditions, preconditionsIn } from './preconditions.ts';
import type { Problem } from './problem.ts';
import { type Reply, replyHeaders } from './reply.ts';
import type { Route } from './route.ts';
import { withSiblingRoutes } from './sibling-routes.ts';

/** The request as an endpoint's function gets it. The values have passed the schemas of its route. */
type RequestOf<R extends Route> = {
  /** The path as sent. */
  readonly path: string;
  readonly headers: Output<R['headers']>;
  readonly params: Output<R['params']>;
  readonly query: Output<R['query']>;
  readonly body: Output<R['body']>;
  /** Only for a route that waits; undefined for HEAD, which never waits. */
  readonly waitUncounted: WaitUncounted | undefined;
  /** Empty unless the route is conditional. */
  readonly preconditions: Preconditions;
  readonly principal: R['role'] extends 'public' ? undefined : ServicePrincipal;
};

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type Value<R extends Route> = R['reply'] extends Reply<infer V> ? V : never;

/** A route and the function that serves it. Bound to a service it is a handler. */
export type Endpoint<Needs = Service> = { readonly route: Route; bind(service: Needs): Handler };

/**
 * Declares an endpoint. Its function responds by returning a value for its reply, and refuses by throwing a Problem.
 */
export function endpoint<const R extends Route>(
  route: R,
  answer: (request: RequestOf<R>, service: Services[R['needs']]) => Value<R> | Promise<Value<R>>,
): Endpoint<Services[R['needs']]> {
  return {
    route,
    bind(service) {
      const resultOf = resultsOf(route);
      const handler = serve(service, {
        route,
        // Only a public route is bound to less than the whole service, and it requires no token.
        checks: checksOf(route, service as ProtectedService),
        answer(event, context) {
          const request = requestOf<R>(route, event, context);
          const { accept } = event.headers;
          const value = answer(request, service);
          return value instanceof Promise
            ? value.then((settled) => resultOf(settled, request.preconditions, accept))
            : resultOf(value, request.preconditions, accept);
        },
      });
      const { path, siblings } = route;
      const refuse = (problem: Problem) => refuseWith(service, problem);
      return siblings ? withSiblingRoutes(path, siblings, handler, refuse) : handler;
    },
  };
}

/** The checks, in the order in which a request is refused. The router, or API Gateway, has checked path and method. */
function checksOf(route: Route, { settings, tokenVerifier }: ProtectedService): Middleware[] {
  return [
    pathParameters(route.path),
    ...(route.role === 'public' ? [] : [authenticate(tokenVerifier, route.role, settings.oauth.rolesClaim)]),
    ...(route.conditional === 'writing' && settings.requireIfMatch ? [demandPrecondition()] : []),
    ...(route.body ? [demandJson(route.method), receiveBody(settings.bodyLimit)] : []),
    validate(route),
  ];
}

function requestOf<R extends Route>(
  { conditional, waits }: Route,
  event: GatewayEvent,
  context: RequestContext,
): RequestOf<R> {
  const { values, principal } = context;
  const preconditions = conditional ? preconditionsIn(event.headers) : NO_PRECONDITIONS;
  const isHead = event.requestContext.http.method === 'HEAD';
  const waitUncounted = waits && !isHead ? waitUncountedOf(event, context) : undefined;
  return {
    path: event.rawPath,
    headers: values?.headers,
    params: values?.params,
    query: values?.query,
    body: values?.body,
    waitUncounted,
    preconditions,
    principal,
  } as RequestOf<R>;
}

/** In milliseconds: the time that a function needs for its response after a wait. */
const WAIT_MARGIN = 500;

/** The wait of a function ends before its time is up. */
function waitUncountedOf(event: GatewayEvent, context: RequestContext): WaitUncounted {
  const left = Math.max(timeUntilDeadline(context) - WAIT_MARGIN, 0);
  return (milliseconds, wait) => {
    const most = Math.min(milliseconds, left);
    return event.waitUncounted ? event.waitUncounted(most, wait) : waitWithoutHost(most, wait);
  };
}

function resultsOf({ success, reply, conditional }: Route) {
  const headersOf = replyHeaders(reply);
  return (value: unknown, preconditions: Preconditions, accept: string | undefined): GatewayResult => {
    const headers = headersOf(value, accept);
    if (conditional === 'reading' && isUnmodified(preconditions, headers.ETag ?? ''))
      return notModified(headers);
    const statusCode = reply.other?.appliesTo(value) ? reply.other.status : success;
    return { statusCode, headers, body: reply.write(value), isBase64Encoded: false };
  };
}

/** The headers of a 200 without those that describe its content (RFC 9110 section 15.4.5). */
function notModified({ 'Content-Type': _, ...headers }: Record<string, string>): GatewayResult {
  return { statusCode: 304, headers, body: '', isBase64Encoded: false };
}
