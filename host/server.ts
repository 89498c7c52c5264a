import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GatewayResult, Handler } from '../lib/gateway.ts';
import { unavailable } from '../lib/problem.ts';
import { refuseWith } from '../lib/serve.ts';
import type { Service } from '../lib/service.ts';
import { onceCallerLeft } from './caller-left.ts';
import { answerClientErrors, type Exchange, SILENCE } from './client-errors.ts';
import { createConnectionClose } from './connection-close.ts';
import type { Door } from './door.ts';
import type { Drain, RequestInFlight } from './drain.ts';
import { RequestEvent } from './gateway-adapter.ts';
import { faultOfHostHeader } from './host-header.ts';
import { createOneAtATime } from './one-at-a-time.ts';
import { preparedRefusal } from './prepared-refusal.ts';
import type { ResponseWriter } from './response-writer.ts';
import type { Router } from './router.ts';
import type { Shutdown } from './shutdown.ts';

/** Node's own limits: slow clients are gone within 12 seconds; balancers close idle connections before we do. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: SILENCE,
  // Answered here, as a problem.
  requireHostHeader: false,
  // A request without a body is none to be read: its stream costs as much as all else that Node does for it.
  optimizeEmptyRequests: true,
};

/** A client that has sent all that it wants to, and says so, is still answered. */
const HALF_OPEN = { httpAllowHalfOpen: true };

type Options = {
  readonly service: Service;
  readonly router: Router;
  readonly door: Door;
  readonly drain: Drain;
  readonly responses: ResponseWriter;
  readonly shutdown: Pick<Shutdown, 'isDraining'>;
};

/** The HTTP server: each request becomes an event for its endpoint, and the result the response. */
export function createHttpServer({ service, router, door, drain, responses, shutdown }: Options): Server {
  const exchanges = new WeakMap<Socket, Exchange>();
  const connections = createConnectionClose(exchanges);
  const oneAtATime = createOneAtATime();
  const refusal = preparedRefusal(service.settings);

  function receive(request: IncomingMessage, response: ServerResponse): void {
    if (connections.isClosing(request.socket)) return;
    const event = new RequestEvent(request, response);
    const previous = exchanges.get(request.socket)?.response;
    exchanges.set(request.socket, { event, request, response });
    const match = router(event.requestContext.http.method, event.rawPath);
    event.pathParameters = match.params;
    const inFlight = match.isProbe ? undefined : enter(event, response);
    const fault = faultOfHostHeader(request, event);
    const handler = fault ? refuseWith(service, fault) : match.handler;
    // A handler never rejects: whatever fails here is a connection that cannot be written to.
    const answered = () => void answer(handler, event, response, inFlight).catch(() => response.destroy());
    oneAtATime(previous, {
      response,
      serve() {
        if (match.isProbe || door.isOpen) answered();
        else door.queue({ response, serve: answered, refuse: () => refuse(event, response, inFlight) });
      },
      drop: () => inFlight?.leave(),
    });
  }

  function enter(event: RequestEvent, response: ServerResponse): RequestInFlight {
    const inFlight = drain.enter(
      () => event.refuseBody(cancelled()),
      (onLeft) => onceCallerLeft(response, onLeft),
    );
    event.standAside = inFlight.standAside;
    return inFlight;
  }

  function refuse(event: RequestEvent, response: ServerResponse, inFlight?: RequestInFlight): void {
    inFlight?.leave();
    write(response, refusal(event), event);
  }

  async function answer(
    handler: Handler,
    event: RequestEvent,
    response: ServerResponse,
    inFlight?: RequestInFlight,
  ): Promise<void> {
    const result = await handler(event).finally(inFlight?.leave);
    // The connection remembers the event until the next one comes: 512 idle ones held 33 MB of bodies.
    event.body = undefined;
    write(response, result, event);
    if (inFlight) door.onAnswered(response);
  }

  function write(response: ServerResponse, result: GatewayResult, event: RequestEvent): void {
    if (response.destroyed) return;
    if (shutdown.isDraining) connections.closeAfter(response);
    responses.write(response, result, event.isBodyToCome);
  }

  const server = Object.assign(createServer(LIMITS, receive), HALF_OPEN);
  // A caller that waits for 100 Continue gets it once its token has been accepted; other expectations are ignored.
  server.on('checkContinue', receive);
  server.on('checkExpectation', receive);
  answerClientErrors(server, service, router, exchanges);
  return server;
}

const cancelled = () => unavailable('the request was cancelled by the shutdown');
