import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Connections whose next request is left in the kernel, where it costs the process nothing. */
export type Unread = {
  readonly size: number;
  /** Reads nothing more from the connection of this answer, once that is out. */
  leave(response: ServerResponse): void;
  /**
   * Reads so many again: those first that were left last, whose callers have waited least; none that was left for longer
   * than `longest` milliseconds.
   */
  read(count: number, longest?: number): void;
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
    leave(response) {
      const { socket } = response.req;
      // Until then Node itself goes on reading, for what is left of the request.
      response.once('close', () => {
        if (socket.destroyed) return;
        socket.pause();
        connections.push({ socket, since: performance.now() });
      });
    },
    read(count, longest = Number.POSITIVE_INFINITY) {
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
