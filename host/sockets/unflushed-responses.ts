import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/**
 * Responses that are written but not accepted by the kernel, because their clients have not read earlier data. Together
 * they have a limit: 67 clients that requested lists of 1,000 users and read nothing held 132 MB, and now hold 16 MB.
 */
export type UnflushedResponses = {
  /** Must be called for a response of so many bytes that did not leave at once. */
  add(response: ServerResponse, bytes: number): void;
  /** Resolves when clients have received everything that was written. */
  untilSent(): Promise<void>;
};

/** In milliseconds. A client that takes longer to read its response is disconnected. */
const READING_TIME = 10_000;

/** In milliseconds. A client does not read if the kernel has accepted nothing of its response for so long. */
const STALLED = 250;

/** In milliseconds. A client that has not read for so long after that is disconnected, however little is unsent. */
const SILENCE = 5000;

/** In bytes: 25 lists of 1,000 users with long names and addresses. */
const LIMIT = 16_000_000;

/**
 * Creates the record of one server's unsent responses. Beyond `limit` bytes, clients that do not read are disconnected,
 * those that have not read for the longest time first. Beyond twice the limit any client is, the oldest response first.
 * The last response stays, whatever its size.
 */
export function createUnflushedResponses(limit = LIMIT): UnflushedResponses {
  /** In the order in which they were written, with their bytes. */
  const unsent = new Map<ServerResponse, number>();
  /** In the order in which their clients stopped reading. */
  const stalled = new Set<ServerResponse>();
  let total = 0;

  function add(response: ServerResponse, bytes: number): void {
    unsent.set(response, bytes);
    total += bytes;
    const timer = setTimeout(() => response.destroy(), READING_TIME).unref();
    // Node starts the timer again whenever the kernel accepts something.
    response.setTimeout(STALLED, () => {
      if (stalled.has(response)) return void response.destroy();
      stalled.add(response);
      response.setTimeout(SILENCE);
      cutOff();
    });
    // Called before Node removes the response from the connection: the next request may take any time.
    response.prependOnceListener('finish', () => response.setTimeout(0));
    response.once('close', () => {
      clearTimeout(timer);
      remove(response);
    });
    cutOff();
  }

  function cutOff(): void {
    while (total > limit && unsent.size > 1) {
      const [response] = stalled.size > 0 || total <= 2 * limit ? stalled : unsent.keys();
      if (!response) return;
      remove(response);
      response.destroy();
    }
  }

  function remove(response: ServerResponse): void {
    total -= unsent.get(response) ?? 0;
    unsent.delete(response);
    stalled.delete(response);
  }

  return {
    add,
    async untilSent() {
      // The last response is written right after the end of the drain, and further ones while these are being sent.
      do {
        await setImmediate();
        await Promise.all([...unsent.keys()].map((response) => once(response, 'close')));
      } while (unsent.size > 0);
    },
  };
}
