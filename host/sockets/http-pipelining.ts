import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request that may have to wait until the earlier requests of its connection are answered. */
export type PipelinedRequest = {
  readonly response: ServerResponse;
  /** Called when the earlier requests are answered. */
  proceed(): void;
  /** Called if the connection has closed meanwhile. */
  drop(): void;
};

/**
 * A connection with so many waiting requests is not read. Node stops reading only if its client does not read the
 * responses, and here there are no responses yet. Within four seconds one caller without a token, which read all
 * responses, had filled the heap with 300,000 requests of 28 bytes. Data that was read before, 64 KB at most, still
 * becomes requests.
 */
const MAX_WAITING = 64;

/** With so many waiting requests the connection is read again. */
const RESUME_AT = 32;

/**
 * The order of the requests on each connection: one after the other, as their responses are sent (RFC 9112 section
 * 9.3.2). A client that sends forty requests at once and reads no response therefore costs one response, and does not
 * act as forty callers.
 */
export class RequestOrder {
  readonly #pipelines = new WeakMap<Socket, Pipeline>();

  /** Whether the previous response of the same connection, if there was one, is not sent yet. */
  isBehind(previous: ServerResponse | undefined): previous is ServerResponse {
    return previous !== undefined && !previous.writableFinished;
  }

  /** Lets a request proceed when the previous one is answered. */
  follow(previous: ServerResponse, request: PipelinedRequest): void {
    const { socket } = request.response.req;
    const pipeline = this.#pipelines.get(socket);
    if (pipeline && !pipeline.isEmpty) pipeline.add(request);
    else this.#pipelines.set(socket, new Pipeline(socket, request, previous));
  }
}

/** The requests of one connection that wait, at least one at first. */
class Pipeline {
  readonly #socket: Socket;
  readonly #requests: PipelinedRequest[];

  constructor(socket: Socket, first: PipelinedRequest, previous: ServerResponse) {
    this.#socket = socket;
    this.#requests = [first];
    this.#waitFor(previous);
  }

  get isEmpty(): boolean {
    return this.#requests.length === 0;
  }

  add(request: PipelinedRequest): void {
    this.#requests.push(request);
    if (this.#requests.length === MAX_WAITING) this.#socket.on('resume', this.#pauseWhileMany).pause();
  }

  #waitFor(previous: ServerResponse): void {
    previous.once('close', () => this.#proceed());
  }

  #proceed(): void {
    if (this.#socket.destroyed) {
      for (const request of this.#requests) request.drop();
      return;
    }
    const next = this.#requests.shift();
    if (next && !this.isEmpty) this.#waitFor(next.response);
    if (this.#requests.length === RESUME_AT && this.#socket.isPaused()) this.#socket.resume();
    next?.proceed();
  }

  /**
   * Node itself continues to read at the end of each request, and for the rest of a request that was answered before it
   * was received.
   */
  readonly #pauseWhileMany = (): void => {
    if (this.#requests.length > RESUME_AT) this.#socket.pause();
    else this.#socket.off('resume', this.#pauseWhileMany);
  };
}
