import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request in progress: the last one that its connection has sent. */
export type CurrentRequest = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Ends the wait for a body that will not arrive. */
  refuseBody(reason: Error): void;
};

/**
 * The current request of each connection of a server, and the connections that end with a response, which says
 * `Connection: close` (RFC 9112 section 9.6).
 *
 * A connection refers only to a request in progress. With 2,000 connections that kept their last request, each request
 * lived until the next one, and collections of the young generation took a quarter of the time, 10 ms each. The rest of
 * a request that was answered early is still received.
 */
export class CurrentRequests {
  readonly #current = new WeakMap<Socket, CurrentRequest>();
  readonly #closing = new WeakSet<Socket>();
  /** One listener for all responses: a closure for each request would cost memory. */
  readonly #onFinish: (this: ServerResponse) => void;

  constructor() {
    const forget = (response: ServerResponse) => this.#forget(response);
    this.#onFinish = function () {
      forget(this);
    };
  }

  get(socket: Socket): CurrentRequest | undefined {
    return this.#current.get(socket);
  }

  has(socket: Socket): boolean {
    return this.#current.has(socket);
  }

  /** Replaces the current request of its connection, until its response is sent. */
  set(current: CurrentRequest): void {
    this.#current.set(current.request.socket, current);
    current.response.on('finish', this.#onFinish);
  }

  /** Ends the connection with this response, unless a later request of the connection is already in progress. */
  closeAfter(response: ServerResponse): void {
    const { socket } = response.req;
    // With pipelined requests, the last response is the one to the last request.
    if (this.#current.get(socket)?.response !== response) return;
    response.setHeader('Connection', 'close');
    this.#closing.add(socket);
  }

  /** Whether the client was informed that the last response was the final one. Later requests are not served. */
  isClosing(socket: Socket): boolean {
    return this.#closing.has(socket);
  }

  #forget(response: ServerResponse): void {
    const { req: request } = response;
    const { socket } = request;
    if (!request.complete) request.once('close', () => this.#forget(response));
    else if (this.#current.get(socket)?.response === response) this.#current.delete(socket);
  }
}
