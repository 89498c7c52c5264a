import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request that may have to wait until those before it on its connection are answered. */
export type Turn = {
  readonly response: ServerResponse;
  serve(): void;
  /** Its connection has gone meanwhile. */
  drop(): void;
};

/** The order of the requests on each connection. */
export type OneAtATime = {
  /** Whether the response before on the same connection, if there was one, is not out yet. */
  isToWaitFor(previous: ServerResponse | undefined): previous is ServerResponse;
  /** Serves a request once that is answered. */
  follow(previous: ServerResponse, turn: Turn): void;
};

/**
 * Serves the requests of each connection one after the other, as their answers go out (RFC 9112 section 9.3.2): whoever
 * sends forty at once and reads no answer costs one answer, and is no forty callers to those on other connections.
 */
export function createOneAtATime(): OneAtATime {
  const behind = new WeakMap<Socket, Turn[]>();

  function serveBehind(previous: ServerResponse, turns: Turn[], socket: Socket): void {
    previous.once('close', () => {
      if (socket.destroyed) return turns.forEach(({ drop }) => void drop());
      const next = turns.shift();
      if (next && turns.length > 0) serveBehind(next.response, turns, socket);
      else behind.delete(socket);
      next?.serve();
    });
  }

  return {
    isToWaitFor: (previous): previous is ServerResponse =>
      previous !== undefined && !previous.writableFinished,
    follow(previous, turn) {
      const { socket } = turn.response.req;
      const turns = behind.get(socket) ?? [];
      turns.push(turn);
      if (turns.length > 1) return;
      behind.set(socket, turns);
      serveBehind(previous, turns, socket);
    },
  };
}
