import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GatewayResult, Handler } from '../lib/http/gateway.ts';
import { refuseWith } from '../lib/http/middleware-stack.ts';
import type { Service } from '../lib/service.ts';
import type { Admission, Admissions } from './admission/admission.ts';
import { createOverloadResponse } from './admission/overload-response.ts';
import { findHostFault, RequestEvent } from './request-event.ts';
import type { RequestsInFlight } from './requests-in-flight.ts';
import type { ResponseWriter } from './response-writer.ts';
import type { Match, Router } from './router.ts';
import type { Shutdown } from './shutdown.ts';
import { answerClientErrors, type Exchange } from './sockets/client-errors.ts';
import { createConnectionClose } from './sockets/connection-close.ts';
import type { RequestOrder } from './sockets/http-pipelining.ts';
import { closeSilentConnections } from './sockets/silent-connections.ts';

/** Node's own limits. Slow clients are disconnected within 12 seconds. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  // `closeSilentConnections` does the same at a lower cost.
  keepAliveTimeout: 0,
  // The service answers this case with a problem document.
  requireHostHeader: false,
  // A request without a body gets no readable stream, which would cost as much as everything else that Node does for
  // it.
  optimizeEmptyRequests: true,
};

/** A client that has sent everything, and says so, still gets its response. */
const HALF_OPEN = { httpAllowHalfOpen: true };

type Options = {
  readonly service: Service;
  readonly router: Router;
  readonly requestOrder: RequestOrder;
  readonly admissions: Admissions;
  readonly drain: RequestsInFlight;
  readonly responses: ResponseWriter;
  readonly shutdown: Pick<Shutdown, 'isDraining'>;
};

/** Creates the HTTP server. Each request becomes an event for its endpoint, and the result becomes the response. */
export function createHttpServer({
  service,
  router,
  requestOrder,
  admissions,
  drain,
  responses,
  shutdown,
}: Options): Server {
  const exchanges = new WeakMap<Socket, Exchange>();
  const connections = createConnectionClose(exchanges);
  const refusal = createOverloadResponse(service.settings);

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (connections.isClosing(socket)) return;
    const event = new RequestEvent(request, response);
    const previous = exchanges.get(socket)?.response;
    exchanges.set(socket, { event, request, response });
    response.on('finish', forget);
    const match = router(event.requestContext.http.method, event.rawPath);
    event.pathParameters = match.params;
    if (!match.isProbe) event.inFlight = drain.enter(event);
    const fault = findHostFault(request, event);
    const handler = fault ? refuseWith(service, fault) : match.handler;
    if (!requestOrder.isToWaitFor(previous)) admit(handler, event, response, match);
    else
      requestOrder.follow(previous, {
        response,
        isInFlight: event.inFlight !== undefined,
        serve: () => admit(handler, event, response, match),
        drop: () => event.inFlight?.leave(),
      });
  }

  /**
   * A connection refers only to its current request. With 2,000 connections, each request lived until the next one, and
   * collections of the young generation took a quarter of the time, 10 ms each. The rest of a request that was answered
   * early is still received.
   */
  function forget(this: ServerResponse): void {
    const { req: request } = this;
    const { socket } = request;
    if (!request.complete) request.once('close', () => forget.call(this));
    else if (exchanges.get(socket)?.response === this) exchanges.delete(socket);
  }

  function admit(handler: Handler, event: RequestEvent, response: ServerResponse, match: Match): void {
    const { isMemoryIntensive, statementKind } = match;
    const kind = typeof statementKind === 'function' ? statementKind(event.headers) : statementKind;
    const door = admissions.for(kind);
    if (!event.inFlight || door.admits(response, isMemoryIntensive))
      void answer(handler, event, response, door);
    else
      door.queue({
        response,
        isMemoryIntensive,
        serve: () => void answer(handler, event, response, door),
        refuse: () => refuse(event, response),
      });
  }

  function refuse(event: RequestEvent, response: ServerResponse): void {
    event.inFlight?.leave();
    write(response, refusal(event), event);
  }

  async function answer(
    handler: Handler,
    event: RequestEvent,
    response: ServerResponse,
    door: Admission,
  ): Promise<void> {
    try {
      const result = await handler(event);
      event.inFlight?.leave();
      // The body is not needed while the response is sent.
      event.body = undefined;
      write(response, result, event);
      if (event.inFlight) door.onAnswered(response);
    } catch {
      event.inFlight?.leave();
      // A handler never rejects. A failure here means that the connection cannot be written to.
      response.destroy();
    }
  }

  function write(response: ServerResponse, result: GatewayResult, event: RequestEvent): void {
    if (response.destroyed) return;
    if (shutdown.isDraining) connections.closeAfter(response);
    responses.write(response, result, event.isBodyToCome);
  }

  const server = Object.assign(createServer(LIMITS, receive), HALF_OPEN);
  // A caller that waits for 100 Continue gets it when its token has been accepted. Other expectations are ignored.
  server.on('checkContinue', receive);
  server.on('checkExpectation', receive);
  answerClientErrors(server, service, router, exchanges);
  const { destroyAll } = closeSilentConnections(server, { isBusy: (socket) => exchanges.has(socket) });
  return Object.assign(server, { closeAllConnections: destroyAll });
}
