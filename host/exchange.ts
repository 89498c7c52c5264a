import type { IncomingMessage, ServerResponse } from 'node:http';
import { findBearerToken } from '../lib/auth/authenticate.ts';
import { createRefusingHandler } from '../lib/endpoint/middleware-stack.ts';
import type { GatewayResult, Handler } from '../lib/http/gateway.ts';
import { toProblem } from '../lib/http/problem.ts';
import { logProblem } from '../lib/observability/request-log.ts';
import type { Service } from '../lib/service.ts';
import { type Admission, type Admissions, createRefusal, type QueuedRequest } from './admission/index.ts';
import { findHostFault, RequestEvent } from './request-event.ts';
import type { CountedRequest, RequestsInFlight } from './requests-in-flight.ts';
import { writeResponse } from './response-writer.ts';
import type { Router } from './router.ts';
import {
  type Connection,
  type ConnectionRequest,
  type Connections,
  isDisconnected,
} from './sockets/connections.ts';
import type { UnflushedResponses } from './sockets/unflushed-responses.ts';

export type ExchangeParts = {
  readonly service: Service;
  readonly router: Router;
  readonly connections: Connections;
  readonly inFlight: RequestsInFlight;
  readonly admissions: Admissions;
  readonly responses: UnflushedResponses;
};

/**
 * A request and its response, from the parser to the socket: its turn on the connection, its admission, its handler and
 * its response. It is the event that the handler gets.
 */
export class Exchange extends RequestEvent implements ConnectionRequest, CountedRequest, QueuedRequest {
  caller: QueuedRequest['caller'];
  readonly #connection: Connection;
  readonly #parts: ExchangeParts;
  readonly #handler: Handler;
  /** Undefined for a probe, which is not counted as a request in flight, and never queued or refused. */
  readonly #admission: Admission | undefined;

  /** Finds the handler. `begin` does the rest. */
  constructor(request: IncomingMessage, response: ServerResponse, parts: ExchangeParts) {
    super(request, response);
    const { handler, route, params } = parts.router.find(this.requestContext.http.method, this.rawPath);
    this.pathParameters = params;
    const fault = findHostFault(this);
    this.#connection = parts.connections.of(request.socket);
    this.#parts = parts;
    this.#handler = fault ? createRefusingHandler(parts.service, fault) : handler;
    this.#admission = route?.isProbe ? undefined : parts.admissions.of(route, this);
  }

  /** Counts the request, and lets it wait for the earlier ones. Ignores it if the connection is closing. */
  begin(): void {
    if (this.#connection.isClosing) return;
    const { inFlight } = this.#parts;
    const isNext = this.#connection.add(this);
    if (this.#admission) {
      inFlight.enter(this);
      if (!isNext) inFlight.wait(this);
      this.#identifyCaller();
    }
    if (isNext) this.#admit();
  }

  proceed(): void {
    this.#parts.inFlight.proceed(this);
    this.#admit();
  }

  drop(): void {
    this.#parts.inFlight.leave(this);
  }

  serve(): void {
    this.#parts.inFlight.proceed(this);
    void this.#respond();
  }

  respondOverloaded(): void {
    this.#parts.inFlight.leave(this);
    this.#write(createRefusal(this, this.#parts.service.settings.requestIdHeader));
  }

  waitUncounted<Result>(milliseconds: number, wait: (over: AbortSignal) => Promise<Result>): Promise<Result> {
    return this.#parts.inFlight.waitUncounted(this, milliseconds, wait);
  }

  onceDisconnected(onDisconnected: () => void): () => void {
    const { response } = this;
    const { socket } = this.request;
    if (isDisconnected(response)) queueMicrotask(onDisconnected);
    socket.on('end', onDisconnected);
    response.on('close', onDisconnected);
    return () => {
      socket.off('end', onDisconnected);
      response.off('close', onDisconnected);
    };
  }

  #identifyCaller(): void {
    const token = findBearerToken(this.headers.authorization ?? '');
    const principal = token === undefined ? undefined : this.#parts.service.tokenVerifier.recall(token);
    this.caller = this.#connection.identify(token, principal);
  }

  #admit(): void {
    if (!this.#admission || this.#admission.admits(this)) void this.#respond();
    else {
      this.#parts.inFlight.wait(this);
      this.#admission.queue(this);
    }
  }

  async #respond(): Promise<void> {
    const { inFlight } = this.#parts;
    try {
      const result = await this.#handler(this);
      inFlight.leave(this);
      // The body is not needed while the response is sent.
      this.body = undefined;
      this.#write(result);
      if (!this.#admission) return;
      // Its token may have been verified meanwhile. Its connection then has the turn of its caller.
      if (this.caller === undefined) this.#identifyCaller();
      this.#admission.onAnswered(this);
    } catch (fault) {
      this.#breakOff(fault);
    }
  }

  /** A handler never rejects. Unless the connection cannot be written to, the fault is a defect. */
  #breakOff(fault: unknown): void {
    const { inFlight, service } = this.#parts;
    inFlight.leave(this);
    if (!this.response.destroyed) logProblem(service.log, toProblem(fault), this.rawPath);
    this.response.destroy();
  }

  #write(result: GatewayResult): void {
    // Java's client waits for 100 even without a body. A body that has come was sent without waiting.
    const isBodyUnread = this.isBodyToCome || this.request.readableLength > 0;
    if (result.statusCode < 400 || !isBodyUnread) this.sendContinue();
    // The body may be in the packet that is being parsed.
    const send = () => {
      try {
        this.#send(result);
      } catch (fault) {
        this.#breakOff(fault);
      }
    };
    if (this.isBodyToCome && this.expectsContinue) setImmediate(send);
    else send();
  }

  #send(result: GatewayResult): void {
    const { service, inFlight, responses } = this.#parts;
    const { keepAliveTimeout, bodyLimit } = service.settings;
    if (this.response.destroyed) return;
    // The client may send the body or not. Its next request would be taken for the body (RFC 9110 section 10.1.1).
    const isBodyRefused = this.isBodyToCome && this.expectsContinue;
    if (isBodyRefused || inFlight.isDraining) this.#connection.closeAfter(this.response);
    const maxRest = isBodyRefused ? bodyLimit : undefined;
    writeResponse(this.response, result, this.isBodyToCome, responses, { keepAliveTimeout, maxRest });
  }
}
