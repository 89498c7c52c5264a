import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './client-errors.ts';

/** The connections that end with a response: it says `Connection: close` (RFC 9112 section 9.6). */
export type ConnectionClose = {
  /** Ends the connection with this response, unless a later request of its own is on the way already. */
  closeAfter(response: ServerResponse): void;
  /** Whether its client has been told that the last answer was the last one: what still comes is not served. */
  isClosing(socket: Socket): boolean;
};

/** The connections of one server; `exchanges` has the last request of each that is being served. */
export function createConnectionClose(exchanges: WeakMap<Socket, Exchange>): ConnectionClose {
  const closing = new WeakSet<Socket>();
  return {
    closeAfter(response) {
      const { socket } = response.req;
      // Of requests that came one behind the other without waiting, the last one's answer is the last.
      if (exchanges.get(socket)?.response !== response) return;
      response.setHeader('Connection', 'close');
      closing.add(socket);
    },
    isClosing: (socket) => closing.has(socket),
  };
}
