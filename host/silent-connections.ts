import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How long a connection may carry nothing, before its first request and between two; in seconds, as `Keep-Alive` tells. */
export const SILENCE = 75;

/** Later than told, so that no request meets the end of its connection; in milliseconds. */
const GRACE = 5000;

type Options = {
  /** Whether a request of the connection is being served. */
  readonly isBusy: (socket: Socket) => boolean;
  /** In milliseconds. */
  readonly silence?: number;
  /** How often all connections are looked at; in milliseconds. */
  readonly period?: number;
};

/** How much a connection had received when it was looked at, and since when it has been silent. */
type Seen = { received: number; since: number };

/**
 * Closes connections that have carried nothing for a while. Node's own keepAliveTimeout sets a timer after each answer and
 * clears it at the next request: a fiftieth of what a read costs, and from 2,000 connections a twelfth.
 */
export function closeSilent(
  server: Server,
  { isBusy, silence = SILENCE * 1000 + GRACE, period = GRACE }: Options,
): void {
  const connections = new Map<Socket, Seen>();

  function look(): void {
    const now = performance.now();
    for (const [socket, seen] of connections) {
      const received = socket.bytesRead;
      if (received !== seen.received || isBusy(socket)) connections.set(socket, { received, since: now });
      else if (now - seen.since >= silence) socket.destroy();
    }
  }

  server.on('connection', (socket: Socket) => {
    connections.set(socket, { received: 0, since: performance.now() });
    socket.once('close', () => connections.delete(socket));
  });
  const timer = setInterval(look, period).unref();
  server.once('close', () => clearInterval(timer));
}
