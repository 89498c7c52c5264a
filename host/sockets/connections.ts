import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ServicePrincipal } from '../../lib/auth/principal.ts';
import { ChurningSet } from '../../lib/churning-set.ts';

/** In milliseconds, at most: the connection is closed later than announced, so that no request meets its end. */
const MAX_GRACE_MS = 5000;

/**
 * A connection with this many waiting requests is not read. Without this limit, one caller without a token, which read
 * all responses, filled the heap within four seconds: 300,000 requests of 28 bytes. Node pauses only for unread
 * responses, and waiting requests have none yet. Data that was read before, at most 64 KB, still becomes requests.
 */
const MAX_WAITING_REQUESTS = 64;

/** The `sub` of a verified token; undefined for all requests without one together. */
export type Caller = string | undefined;

/** A request of a connection, from its arrival until its response is sent. */
export type ConnectionRequest = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Called when the earlier requests of the connection are answered. */
  proceed(): void;
  /** Called if the connection has closed meanwhile. */
  drop(): void;
  /** Ends the wait for a body that will not arrive. */
  rejectBody(reason: Error): void;
};

/**
 * Whether the client has closed the connection, or says that it sends no more. The server serves half-open connections,
 * so a client that disconnects closes nothing by itself. Such a client hardly waits for a response.
 */
export function isDisconnected({ destroyed, req }: ServerResponse): boolean {
  return destroyed || req.socket.readableEnded;
}

/** The connections of a server, which are closed when they have been silent for a while: see README.md. */
export class Connections {
  readonly #connections = new ChurningSet<Connection>();
  readonly #bySocket = new WeakMap<Socket, Connection>();

  /**
   * Closes connections of this server from now on that have been silent for longer than `keepAlive` and `grace`, before their
   * first request or between two. Both are in milliseconds. All connections are checked once in each `grace`.
   */
  watch(server: Server, keepAlive: number, grace = Math.min(keepAlive, MAX_GRACE_MS)): void {
    server.on('connection', (socket: Socket) => this.of(socket));
    const timer = setInterval(() => {
      for (const connection of this.#connections) connection.destroyIfSilent(keepAlive + grace);
    }, grace).unref();
    server.once('close', () => clearInterval(timer));
  }

  of(socket: Socket): Connection {
    const known = this.#bySocket.get(socket);
    if (known) return known;
    const connection = new Connection(socket);
    this.#bySocket.set(socket, connection);
    this.#connections.add(connection);
    socket.once('close', () => this.#connections.delete(connection));
    return connection;
  }

  /** Destroys those without a request or response in progress. Node's own way also cuts off responses that are not sent yet. */
  destroyIdle(): void {
    for (const { current, socket } of this.#connections) if (!current && socket.writable) socket.destroy();
  }

  /** Destroys all connections, including those that Node has given up after CONNECT. */
  destroyAll(): void {
    for (const { socket } of this.#connections) socket.destroy();
  }
}

/** A connection, whose requests are served one after the other (RFC 9112 section 9.3.2): see README.md. */
export class Connection {
  readonly socket: Socket;
  /** Whether Node's parser has refused a request. */
  isRefused = false;
  /** Whether the client was informed that the last response was the final one. Later requests are not served. */
  isClosing = false;
  /** The last request that the connection has sent, until it is received and answered. */
  current: ConnectionRequest | undefined;
  /** In the order of their arrival. The first one is served, the others wait. */
  readonly #unanswered: ConnectionRequest[] = [];
  /** The caller of the last token, if it was verified. */
  #lastVerified: Caller;
  /** The number of bytes received at the last check, and the time since which the connection has been silent. */
  #received = 0;
  #silentSince = performance.now();

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Adds a request. Returns whether it is served at once: otherwise it proceeds or is dropped later. */
  add(request: ConnectionRequest): boolean {
    this.current = request;
    this.#unanswered.push(request);
    request.response.on('close', this.#onAnswered);
    if (this.#waitingCount === MAX_WAITING_REQUESTS) this.socket.on('resume', this.#pauseWhileMany).pause();
    return this.#waitingCount === 0;
  }

  /** The caller whose turn a request takes. One that renews its token keeps its turn: see ../admission/README.md. */
  identify(token: string | undefined, principal: ServicePrincipal | undefined): Caller {
    if (token === undefined) return undefined;
    const caller = principal?.subject ?? this.#lastVerified;
    this.#lastVerified = principal?.subject;
    return caller;
  }

  /**
   * Ends the connection with this response, which says so (RFC 9112 section 9.6), unless a later request is already in
   * progress.
   */
  closeAfter(response: ServerResponse): void {
    if (this.current?.response !== response) return;
    response.setHeader('Connection', 'close');
    this.isClosing = true;
  }

  /** Must be called regularly. `silence` is in milliseconds. */
  destroyIfSilent(silence: number): void {
    const { bytesRead } = this.socket;
    const now = performance.now();
    if (this.#received !== bytesRead || this.current) {
      this.#received = bytesRead;
      this.#silentSince = now;
    } else if (now - this.#silentSince >= silence) this.socket.destroy();
  }

  get #waitingCount(): number {
    return this.#unanswered.length - 1;
  }

  /** Responses are closed in the order of the requests. A closure for each of them would cost memory. */
  readonly #onAnswered = (): void => {
    const answered = this.#unanswered.shift();
    // The rest of a request that was answered early is still received.
    if (answered?.request.complete) this.#forget(answered);
    else answered?.request.once('close', () => this.#forget(answered));
    if (this.socket.destroyed) {
      for (const request of this.#unanswered.splice(0)) request.drop();
      return;
    }
    if (this.#waitingCount === MAX_WAITING_REQUESTS - 1 && this.socket.isPaused()) this.socket.resume();
    this.#unanswered[0]?.proceed();
  };

  #forget(request: ConnectionRequest): void {
    if (this.current === request) this.current = undefined;
  }

  /**
   * Node itself continues to read at the end of each request, and for the rest of a request that was answered before it
   * was received.
   */
  readonly #pauseWhileMany = (): void => {
    if (this.#waitingCount >= MAX_WAITING_REQUESTS) this.socket.pause();
    else this.socket.off('resume', this.#pauseWhileMany);
  };
}
