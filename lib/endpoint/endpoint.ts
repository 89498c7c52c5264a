import type * as z from 'zod';
import type { ServicePrincipal } from '../auth/principal.ts';
import type { GatewayEvent, GatewayResult, Handler, WaitUncounted } from '../http/gateway.ts';
import { isUnmodified, type Preconditions, readPreconditions } from '../http/preconditions.ts';
import type { Problem } from '../http/problem.ts';
import { type Reply, writeHeaders } from '../http/reply.ts';
import { currentRequest } from '../http/request-scope.ts';
import type { ProtectedService, Service, Services } from '../service.ts';
import { type CheckedRequest, checkRequest } from './check-order.ts';
import { createHandler, createRefusingHandler, type Respond } from './middleware-stack.ts';
import type { Route } from './route.ts';
import { withSiblingRoutes } from './sibling-routes.ts';

/** The request as an endpoint's function gets it. The values have passed the schemas of its route. */
type RequestOf<R extends Route> = {
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

/** Responds to a checked request by returning a value for the reply of its route, and refuses by throwing a Problem. */
type RespondTo<R extends Route> = (
  request: RequestOf<R>,
  service: Services[R['needs']],
) => Value<R> | Promise<Value<R>>;

/** Declares an endpoint: its route, and the function that responds. */
export function endpoint<const R extends Route>(
  route: R,
  respond: RespondTo<R>,
): Endpoint<Services[R['needs']]> {
  return {
    route,
    bind(service) {
      const serve = (checked: CheckedRequest, event: GatewayEvent) => {
        const request = createRequest(route, checked, event);
        const write = (value: unknown) => writeResult(route, value, request.preconditions, event);
        const value = respond(request as RequestOf<R>, service);
        return value instanceof Promise ? value.then(write) : write(value);
      };
      const checkAndServe: Respond = (event, _, { signal }) => {
        // Only a public route may be bound to a service without a verifier, and it requires no token.
        const checked = checkRequest(route, service as ProtectedService, event);
        if (!(checked instanceof Promise)) return serve(checked, event);
        return checked.then((settled) => {
          // At the deadline the request was refused.
          signal.throwIfAborted();
          return serve(settled, event);
        });
      };
      const handler = createHandler(service, checkAndServe, route);
      const createRefusing = (problem: Problem) => createRefusingHandler(service, problem);
      return route.siblings ? withSiblingRoutes(route.siblings, handler, createRefusing) : handler;
    },
  };
}

function createRequest(
  { conditional, waits }: Route,
  { values, principal }: CheckedRequest,
  event: GatewayEvent,
) {
  const isHead = event.requestContext.http.method === 'HEAD';
  return {
    path: event.rawPath,
    ...values,
    waitUncounted: waits && !isHead ? createWait(event) : undefined,
    preconditions: conditional ? readPreconditions(event.headers) : {},
    principal,
  };
}

/** The time that a function needs for its response after a wait. */
const WAIT_MARGIN_MS = 500;

/** The wait of a function ends before its time is up. */
function createWait(event: GatewayEvent): WaitUncounted {
  const { answeredBy = Number.POSITIVE_INFINITY } = currentRequest() ?? {};
  return (milliseconds, wait) => {
    const left = answeredBy - performance.now() - WAIT_MARGIN_MS;
    const limit = Math.trunc(Math.max(Math.min(milliseconds, left), 0));
    return event.waitUncounted ? event.waitUncounted(limit, wait) : wait(AbortSignal.timeout(limit));
  };
}

function writeResult(
  { success = 200, reply, conditional }: Route,
  value: unknown,
  preconditions: Preconditions,
  event: GatewayEvent,
): GatewayResult {
  const headers = writeHeaders(reply, value, event);
  if (conditional === 'reading' && isUnmodified(preconditions, headers.ETag ?? ''))
    return toNotModified(headers);
  const statusCode = reply.other?.appliesTo(value) ? reply.other.status : success;
  return { statusCode, headers, body: reply.write(value), isBase64Encoded: false };
}

/** The headers of a 200 without those that describe its content (RFC 9110 section 15.4.5). */
function toNotModified({ 'Content-Type': _, ...headers }: Record<string, string>): GatewayResult {
  return { statusCode: 304, headers, body: '', isBase64Encoded: false };
}
