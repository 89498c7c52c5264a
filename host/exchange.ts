import type { IncomingMessage, ServerResponse } from 'node:http';
import { findBearerToken, VERIFIED_TOKEN } from '../lib/auth/authenticate.ts';
import type { GatewayResult, Handler } from '../lib/http/gateway.ts';
import { refuseWith } from '../lib/http/middleware-stack.ts';
import type { Service } from '../lib/service.ts';
import type { Admission, Admissions, Caller, OverloadResponse, QueuedRequest } from './admission/index.ts';
import { findHostFault, RequestEvent } from './request-event.ts';
import type { RequestsInFlight } from './requests-in-flight.ts';
import { writeResponse } from './response-writer.ts';
import type { Match, Router } from './router.ts';
import type { Shutdown } from './shutdown.ts';
import type { Connection, ConnectionRequest } from './sockets/connections.ts';
import type { UnflushedResponses } from './sockets/unflushed-responses.ts';

/** The parts of an instance that an exchange passes. */
export type ExchangeParts = {
  readonly service: Service;
  readonly router: Router;
  readonly inFlight: RequestsInFlight;
  readonly admissions: Admissions;
  readonly overloadResponse: OverloadResponse;
  readonly responses: UnflushedResponses;
  readonly shutdown: Pick<Shutdown, 'isDraining'>;
};

/**
 * A request and its response, from the parser to the socket: its turn on the connection, its admission, its handler and
 * its response. It is one object with methods, because closures for each step would cost memory.
 */
export class Exchange implements ConnectionRequest, QueuedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  caller: Caller;
  readonly #connection: Connection;
  readonly #event: RequestEvent;
  readonly #match: Match;
  readonly #handler: Handler;
  readonly #admission: Admission;
  readonly #parts: ExchangeParts;

  /** Finds the handler. `begin` does the rest. */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    parts: ExchangeParts,
  ) {
    const event = new RequestEvent(request, response, parts.inFlight);
    const match = parts.router.find(event.requestContext.http.method, event.rawPath);
    event.pathParameters = match.params;
    const fault = findHostFault(request, event);
    // A request that needs no statement is admitted as a list is.
    const first = match.route?.firstStatement ?? 'list';
    const kind = typeof first === 'function' ? first(event) : first;
    this.request = request;
    this.response = response;
    this.#connection = connection;
    this.#event = event;
    this.#match = match;
    this.#handler = fault ? refuseWith(parts.service, fault) : match.handler;
    this.#admission = parts.admissions.for(kind, match.route?.isMemoryIntensive === true);
    this.#parts = parts;
  }

  /** Probes are not counted as requests in flight, and are never queued or refused. */
  get #isProbe(): boolean {
    return this.#match.route?.kind === 'probe';
  }

  /** Counts the request, and lets it wait for the earlier ones of its connection. */
  begin(): void {
    const { inFlight } = this.#parts;
    const isNext = this.#connection.add(this);
    if (!this.#isProbe) {
      inFlight.enter(this.#event);
      if (!isNext) inFlight.wait(this.#event);
      this.#identifyCaller();
    }
    if (isNext) this.#admit();
  }

  proceed(): void {
    this.#parts.inFlight.proceed(this.#event);
    this.#admit();
  }

  drop(): void {
    this.#leave();
  }

  serve(): void {
    this.#parts.inFlight.proceed(this.#event);
    void this.#respond();
  }

  refuse(): void {
    this.#leave();
    this.#write(this.#parts.overloadResponse.to(this.#event));
  }

  refuseBody(reason: Error): void {
    this.#event.refuseBody(reason);
  }

  /** Looks into the cache of verified tokens. The authentication rule uses what was found, and does not look again. */
  #identifyCaller(): void {
    const { service } = this.#parts;
    const { authorization } = this.#event.headers;
    const token = authorization === undefined ? undefined : findBearerToken(authorization);
    const verified = token === undefined ? undefined : service.tokenVerifier.recall(token);
    this.#event[VERIFIED_TOKEN] = verified;
    this.caller = this.#connection.caller.identify(token, verified);
  }

  #admit(): void {
    if (this.#isProbe || this.#admission.admits(this)) void this.#respond();
    else {
      this.#parts.inFlight.wait(this.#event);
      this.#admission.queue(this);
    }
  }

  async #respond(): Promise<void> {
    const event = this.#event;
    try {
      const result = await this.#handler(event);
      this.#leave();
      // The body is not needed while the response is sent.
      event.body = undefined;
      this.#write(result);
      if (!this.#isProbe) {
        // Its token may have been verified meanwhile. Its connection then has the turn of its caller.
        if (this.caller === undefined) this.#identifyCaller();
        this.#admission.onAnswered(this);
      }
    } catch {
      this.#leave();
      // A handler never rejects. A failure here means that the connection cannot be written to.
      this.response.destroy();
    }
  }

  #leave(): void {
    this.#parts.inFlight.leave(this.#event);
  }

  #write(result: GatewayResult): void {
    const { responses, shutdown } = this.#parts;
    if (this.response.destroyed) return;
    if (shutdown.isDraining) this.#connection.closeAfter(this.response);
    writeResponse(this.response, result, this.#event.isBodyToCome, responses);
  }
}
