import type { Socket } from 'node:net';

/** Connections whose next request is left in the kernel, where it costs the process nothing. */
export type Unread = {
  readonly size: number;
  /** Reads nothing more from a connection whose last answer is out. */
  leave(socket: Socket): void;
  /** Reads so many again, in the order in which they were left. */
  readFirst(count: number): void;
  /**
   * Reads so many again: those first that were left last, whose callers have waited least; none that was left for longer
   * than `longest` milliseconds.
   */
  readLast(count: number, longest?: number): void;
  /** Reads a part of those again that were left for longer than this; in milliseconds. */
  readOld(age: number): void;
};

/** Of those left for long. Most of their callers have given up, and reading that costs as much as a refusal. */
const PART = 1 / 10;

/** The unread connections of one server. */
export function createUnread(): Unread {
  /** In the order in which they were left. */
  const connections: { readonly socket: Socket; readonly since: number }[] = [];

  return {
    get size() {
      return connections.length;
    },
    leave(socket) {
      // Of requests that came one behind the other each has an answer, and the connection is left once.
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
