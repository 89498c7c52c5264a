import type * as z from 'zod';
import type { Role, ServicePrincipal } from './auth/principal.ts';
import type { GatewayEvent, GatewayResult, Handler } from './gateway.ts';
import { authenticate } from './middleware/authenticate.ts';
import { timeUntilDeadline } from './middleware/deadline.ts';
import { demandPrecondition } from './middleware/demand-precondition.ts';
import { demandJson } from './middleware/media-type.ts';
import type { Middleware, RequestContext } from './middleware/middleware.ts';
import { pathParameters } from './middleware/path-parameters.ts';
import { receiveBody } from './middleware/receive-body.ts';
import { type RequestSchemas, validate } from './middleware/validate.ts';
import { besideNeighbours, type Neighbours } from './neighbours.ts';
import { isUnmodified, NO_PRECONDITIONS, type Preconditions, preconditionsIn } from './preconditions.ts';
import type { Problem } from './problem.ts';
import { type Reply, replyHeaders } from './reply.ts';
import { refuseWith, serve } from './serve.ts';
import type { ProtectedService, Service, Services } from './service.ts';
import { type StandAside, standAside as standAsideAlone } from './stand-aside.ts';

/** What an endpoint promises: router, validation, documentation, bundles and infrastructure all read it here. */
export type Route = RequestSchemas &
  Access & {
    /** Its name in the documentation, and that of its function bundle. */
    readonly operationId: string;
    readonly summary: string;
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
    /** A parameter is a segment in braces. With `/` at its end or without it is the same resource. */
    readonly path: `/${string}`;
    /** Of a path that ends in a parameter: what else may stand there, of which a gateway may not know. */
    readonly neighbours?: Neighbours;
    /** A probe is asked by an orchestrator: it is not counted as a request in flight, and has no span. */
    readonly kind: 'operation' | 'probe';
    /**
     * Whether `If-Match` and `If-None-Match` are looked at (RFC 9110 section 13): those of a reading are evaluated for the
     * `ETag` of its reply, those of a writing by the statement that writes.
     */
    readonly conditional?: 'reading' | 'writing';
    /** Whether what a request becomes is many times its body: of these few are served at once. */
    readonly isHeavy?: true;
    /** Whether it may wait for news; a waiting request is not in flight. */
    readonly waits?: true;
    readonly success: 200 | 201 | 204;
    // biome-ignore lint/suspicious/noExplicitAny: a reply takes what its own endpoint returns, which endpoint() checks
    readonly reply: Reply<any>;
    /** What makes the refusals of its own; those of its checks need not be told. */
    readonly problems: readonly (() => Problem)[];
  };

/** Who may call a route, and what of the service it needs: one that asks for no token gets at no user either. */
type Access =
  | { readonly role: Role; readonly needs: 'users' | 'changes' }
  | { readonly role: 'public'; readonly needs: 'nothing' | 'readiness' };

/** What an endpoint's function gets of the request: values that passed the schemas of its route. */
type RequestOf<R extends Route> = {
  /** The path as it was sent. */
  readonly path: string;
  readonly headers: Output<R['headers']>;
  readonly params: Output<R['params']>;
  readonly query: Output<R['query']>;
  readonly body: Output<R['body']>;
  /** For a route that waits; undefined for HEAD, which never does. */
  readonly standAside: StandAside | undefined;
  /** For a conditional route. */
  readonly preconditions: Preconditions;
  readonly principal: R['role'] extends 'public' ? undefined : ServicePrincipal;
};

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type Value<R extends Route> = R['reply'] extends Reply<infer V> ? V : never;

/** A route and the function that answers it; bound to a service it is a handler. */
export type Endpoint<Needs = Service> = { readonly route: Route; bind(service: Needs): Handler };

/** Declares an endpoint. It answers by returning what its reply takes, and refuses by throwing a Problem. */
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
        // Only a public route is bound to less than the whole service, and it asks for no token.
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
      const { path, neighbours } = route;
      const refuse = (problem: Problem) => refuseWith(service, problem);
      return neighbours ? besideNeighbours(path, neighbours, handler, refuse) : handler;
    },
  };
}

/** In the order in which a request is refused. Path and method were the router's, or API Gateway's, to check. */
function checksOf(route: Route, { settings, verifyToken }: ProtectedService): Middleware[] {
  return [
    pathParameters(route.path),
    ...(route.role === 'public' ? [] : [authenticate(verifyToken, route.role, settings.oauth.rolesClaim)]),
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
  const standAside = waits && !isHead ? standAsideOf(event, context) : undefined;
  return {
    path: event.rawPath,
    headers: values?.headers,
    params: values?.params,
    query: values?.query,
    body: values?.body,
    standAside,
    preconditions,
    principal,
  } as RequestOf<R>;
}

/** In milliseconds: what a function needs to answer after its wait. */
const WAIT_MARGIN = 500;

/** A function's wait ends before its time is up. */
function standAsideOf(event: GatewayEvent, context: RequestContext): StandAside {
  const left = Math.max(timeUntilDeadline(context) - WAIT_MARGIN, 0);
  return (milliseconds, wait) => {
    const most = Math.min(milliseconds, left);
    return event.standAside ? event.standAside(most, wait) : standAsideAlone(most, wait);
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

/** What a 200 would have told, but for its content and what describes that (RFC 9110 section 15.4.5). */
function notModified({ 'Content-Type': _, ...headers }: Record<string, string>): GatewayResult {
  return { statusCode: 304, headers, body: '', isBase64Encoded: false };
}
