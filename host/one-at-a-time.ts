import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request that may have to wait until those before it on its connection are answered. */
export type Turn = {
  readonly response: ServerResponse;
  /** Whether it is in flight meanwhile; probes are not. */
  readonly isInFlight: boolean;
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
  /** How many of those in flight wait so, on all connections. */
  readonly waitingCount: number;
};

/**
 * While so many wait on a connection it is not read. Node stops when its caller reads no answers, and there are none yet:
 * within four seconds one caller without a token, who reads them all, had filled the heap with 300,000 requests of 28 bytes.
 * What has been read by then, 64 KB at most, still becomes requests.
 */
const MANY = 64;

/** With so many it is read again. */
const FEW = 32;

/**
 * Serves the requests of each connection one after the other, as their answers go out (RFC 9112 section 9.3.2): whoever
 * sends forty at once and reads no answer costs one answer, and is no forty callers to those on other connections.
 */
export function createOneAtATime(): OneAtATime {
  const behind = new WeakMap<Socket, Turn[]>();
  let waitingCount = 0;

  function serveBehind(previous: ServerResponse, turns: Turn[], socket: Socket): void {
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

  /** Node itself reads on at the end of each request, and for the rest of one that was answered before it was received. */
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
