import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';

/**
 * Answers that are written, and that the kernel has not taken, for their clients have not read what was before. Together
 * they have a limit: 67 clients who asked for lists of 1,000 users and read none held 132 MB, and hold 16 MB now.
 */
export type Unsent = {
  /** To be told of an answer of so many bytes that did not leave at once. */
  add(response: ServerResponse, bytes: number): void;
  /** Resolves once clients have taken all that is written. */
  untilSent(): Promise<void>;
};

/** A client that takes longer than this to read its answer is cut off; in milliseconds. */
const READING_TIME = 10_000;

/** A client of whose answer the kernel has taken nothing for so long does not read; in milliseconds. */
const STALLED = 250;

/** Who has not read for so long after that is cut off, however little is unsent; in milliseconds. */
const SILENCE = 5000;

/** In bytes: 25 lists of 1,000 users whose names and addresses are long. */
const LIMIT = 16_000_000;

/**
 * The unsent answers of one server. Beyond `limit` bytes clients who do not read are cut off, those first who have not for
 * the longest; beyond twice as many any, the oldest answer first. The last one is left, whatever its size.
 */
export function createUnsent(limit = LIMIT): Unsent {
  /** In the order in which they were written, with their bytes. */
  const unsent = new Map<ServerResponse, number>();
  /** In the order in which they stopped reading. */
  const stalled = new Set<ServerResponse>();
  let total = 0;

  function add(response: ServerResponse, bytes: number): void {
    unsent.set(response, bytes);
    total += bytes;
    const timer = setTimeout(() => response.destroy(), READING_TIME).unref();
    // Node begins anew as long as the kernel takes something.
    response.setTimeout(STALLED, () => {
      if (stalled.has(response)) return void response.destroy();
      stalled.add(response);
      response.setTimeout(SILENCE);
      cutOff();
    });
    // Before Node takes the connection from it: the next request may take as long as it needs.
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
      // The last answer is written right after the drain has ended, and others while these are on their way.
      do {
        await setImmediate();
        await Promise.all([...unsent.keys()].map((response) => once(response, 'close')));
      } while (unsent.size > 0);
    },
  };
}
