import type { Socket } from 'node:net';

/** Connections whose next request stays in the kernel, where it costs the process nothing. */
export type PausedSockets = {
  readonly size: number;
  /** Stops reading a connection whose last response was sent. */
  leave(socket: Socket): void;
  /** Resumes reading so many connections, in the order in which they were left. */
  readFirst(count: number): void;
  /**
   * Resumes reading so many connections. Those that were left last come first, because their callers have waited least.
   * Connections that were left for longer than `longest` milliseconds are not read.
   */
  readLast(count: number, longest?: number): void;
  /** Resumes reading a part of the connections that were left for longer than this time, in milliseconds. */
  readOld(age: number): void;
};

/**
 * Share of the connections that were left for long. Most of their callers have given up, and reading such a connection
 * costs as much as a refusal.
 */
const PART = 1 / 10;

/** Creates the record of one server's unread connections. */
export function createPausedSockets(): PausedSockets {
  /** In the order in which they were left. */
  const connections: { readonly socket: Socket; readonly since: number }[] = [];

  return {
    get size() {
      return connections.length;
    },
    leave(socket) {
      // Each of several pipelined requests has a response, but the connection is left once.
      if (socket.destroyed || socket.isPaused()) return;
      socket.pause();
      connections.push({ socket, since: performance.now() });
    },
    readFirst(count) {
      for (let left = count; left >= 1; left -= 1) {
        const first = connections.shift();
        if (!first) return;
        first.socket.resume();
      }
    },
    readLast(count, longest = Number.POSITIVE_INFINITY) {
      const after = performance.now() - longest;
      for (let left = count; left >= 1; left -= 1) {
        const last = connections.at(-1);
        if (!last || last.since < after) return;
        connections.pop();
        last.socket.resume();
      }
    },
    readOld(age) {
      const before = performance.now() - age;
      const young = connections.findIndex(({ since }) => since >= before);
      const old = young < 0 ? connections.length : young;
      for (const { socket } of connections.splice(0, Math.ceil(old * PART))) socket.resume();
    },
  };
}
