import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './client-errors.ts';

/** The connections that end with a response, which says `Connection: close` (RFC 9112 section 9.6). */
export type ConnectionClose = {
  /** Ends the connection with this response, unless a later request of the connection is already in progress. */
  closeAfter(response: ServerResponse): void;
  /** Whether the client was informed that the last response was the final one. Later requests are not served. */
  isClosing(socket: Socket): boolean;
};

/** Creates the record for one server. `exchanges` has the last request in progress of each connection. */
export function createConnectionClose(exchanges: WeakMap<Socket, Exchange>): ConnectionClose {
  const closing = new WeakSet<Socket>();
  return {
    closeAfter(response) {
      const { socket } = response.req;
      // With pipelined requests, the last response is the one to the last request.
      if (exchanges.get(socket)?.response !== response) return;
      response.setHeader('Connection', 'close');
      closing.add(socket);
    },
    isClosing: (socket) => closing.has(socket),
  };
}
