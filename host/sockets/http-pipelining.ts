import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request that may have to wait until the earlier requests of its connection are answered. */
export type QueuedTurn = {
  readonly response: ServerResponse;
  /** Whether the request is in flight while it waits. Probes are not. */
  readonly isInFlight: boolean;
  serve(): void;
  /** Called if the connection has closed meanwhile. */
  drop(): void;
};

/** The order of the requests on each connection. */
export type RequestOrder = {
  /** Whether the previous response of the same connection, if there was one, is not sent yet. */
  isToWaitFor(previous: ServerResponse | undefined): previous is ServerResponse;
  /** Serves a request when the previous one is answered. */
  follow(previous: ServerResponse, turn: QueuedTurn): void;
  /** Number of requests in flight that wait in this way, on all connections. */
  readonly waitingCount: number;
};

/**
 * A connection with so many waiting requests is not read. Node stops reading only if its client does not read the
 * responses, and here there are no responses yet. Within four seconds one caller without a token, which read all
 * responses, had filled the heap with 300,000 requests of 28 bytes. Data that was read before, 64 KB at most, still
 * becomes requests.
 */
const MANY = 64;

/** With so many waiting requests the connection is read again. */
const FEW = 32;

/**
 * Serves the requests of each connection one after the other, as their responses are sent (RFC 9112 section 9.3.2). A
 * client that sends forty requests at once and reads no response therefore costs one response, and does not act as
 * forty callers.
 */
export function createRequestOrder(): RequestOrder {
  const behind = new WeakMap<Socket, QueuedTurn[]>();
  let waitingCount = 0;

  function serveBehind(previous: ServerResponse, turns: QueuedTurn[], socket: Socket): void {
    previous.once('close', () => {
      if (socket.destroyed) {
        waitingCount -= turns.filter(({ isInFlight }) => isInFlight).length;
        return turns.forEach(({ drop }) => void drop());
      }
      const next = turns.shift();
      if (next?.isInFlight) waitingCount -= 1;
      if (next && turns.length > 0) serveBehind(next.response, turns, socket);
      else behind.delete(socket);
      if (turns.length === FEW && socket.isPaused()) socket.resume();
      next?.serve();
    });
  }

  /**
   * Node itself continues to read at the end of each request, and for the rest of a request that was answered before it
   * was received.
   */
  function pauseWhileMany(this: Socket): void {
    const turns = behind.get(this);
    if (turns && turns.length > FEW) this.pause();
    else this.off('resume', pauseWhileMany);
  }

  return {
    get waitingCount() {
      return waitingCount;
    },
    isToWaitFor: (previous): previous is ServerResponse =>
      previous !== undefined && !previous.writableFinished,
    follow(previous, turn) {
      const { socket } = turn.response.req;
      const turns = behind.get(socket) ?? [];
      turns.push(turn);
      if (turn.isInFlight) waitingCount += 1;
      if (turns.length === MANY) socket.on('resume', pauseWhileMany).pause();
      if (turns.length > 1) return;
      behind.set(socket, turns);
      serveBehind(previous, turns, socket);
    },
  };
}
