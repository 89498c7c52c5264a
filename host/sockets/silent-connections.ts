import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { ChurningSet } from '../../lib/churning-set.ts';

/**
 * In seconds: how long a connection may be silent, before its first request and between two. `Keep-Alive` announces
 * this time.
 */
export const SILENCE = 75;

/** In milliseconds: the connection is closed later than announced, so that no request meets its end. */
const GRACE = 5000;

type Options = {
  /** Whether a request of the connection is in progress. */
  readonly isBusy: (socket: Socket) => boolean;
  /** In milliseconds. */
  readonly silence?: number;
  /** In milliseconds: interval at which all connections are checked. */
  readonly period?: number;
};

/** A connection, the number of bytes received at the last check, and the time since which it has been silent. */
type Connection = { readonly socket: Socket; received: number; since: number };

/**
 * The connections of a server, which are closed when they have been silent for a while. Node's own keepAliveTimeout
 * sets a timer after each response and clears it at the next request: from 2,000 connections a tenth less was answered.
 */
export class SilentConnections {
  readonly #connections = new ChurningSet<Connection>();
  readonly #isBusy: (socket: Socket) => boolean;
  readonly #silence: number;
  readonly #period: number;

  constructor({ isBusy, silence = SILENCE * 1000 + GRACE, period = GRACE }: Options) {
    this.#isBusy = isBusy;
    this.#silence = silence;
    this.#period = period;
  }

  /** Closes silent connections of this server from now on. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#add(socket));
    const timer = setInterval(() => this.#closeSilent(), this.#period).unref();
    server.once('close', () => clearInterval(timer));
  }

  /** Destroys all connections, including those that Node has given up after CONNECT. */
  destroyAll(): void {
    for (const { socket } of this.#connections) socket.destroy();
  }

  #add(socket: Socket): void {
    const connection = { socket, received: 0, since: performance.now() };
    this.#connections.add(connection);
    socket.once('close', () => this.#connections.delete(connection));
  }

  #closeSilent(): void {
    const now = performance.now();
    for (const connection of this.#connections) {
      const { socket, received, since } = connection;
      if (received !== socket.bytesRead || this.#isBusy(socket))
        Object.assign(connection, { received: socket.bytesRead, since: now });
      else if (now - since >= this.#silence) socket.destroy();
    }
  }
}
