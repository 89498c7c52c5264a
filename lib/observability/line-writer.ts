import { AsyncResource } from 'node:async_hooks';
import { writeSync } from 'node:fs';

/** Takes a line without its line feed; never throws and never waits. */
export type WriteLine = (line: string) => void;

/** Writes lines to a file descriptor, whatever becomes of its reader. */
export type LineWriter = {
  /** Queues a line; it is written with all others of this turn of the event loop. */
  readonly write: WriteLine;
  /** Writes what is queued, as far as the reader takes it. */
  flush(): void;
  /** How many lines have been dropped so far. */
  countDropped(): number;
};

type Options = {
  readonly descriptor?: number | undefined;
  /** Called when the reader takes lines again after `count` of them were dropped. */
  readonly onResumed?: (count: number) => void;
};

const STANDARD_OUTPUT = 1;

/** In bytes; a reader that stalls for longer loses lines. */
const QUEUE_LIMIT = 1024 * 1024;

/** Milliseconds between two tries at a reader that takes nothing. */
const PAUSE = 50;

/**
 * Lines for standard output. A stream would end the process when the reader dies or the disk is full, and
 * queue without bound when the reader stalls; so the descriptor is written to directly, which Node has set to
 * non-blocking where it is a pipe.
 */
export function createLineWriter({ descriptor = STANDARD_OUTPUT, onResumed }: Options = {}): LineWriter {
  if (descriptor === STANDARD_OUTPUT) process.stdout.on('error', () => {});
  let queue: string[] = [];
  let rest = Buffer.alloc(0);
  let queued = 0;
  let dropped = 0;
  let reported = 0;
  let isScheduled = false;

  function write(line: string): void {
    const size = Buffer.byteLength(line) + 1;
    if (queued + size > QUEUE_LIMIT) {
      dropped += 1;
      return;
    }
    queue.push(line);
    queued += size;
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(flushLater);
  }

  /** Lines of many requests are written together: what is told then is of none of them. */
  const flushLater = AsyncResource.bind(flush);

  function flush(): void {
    isScheduled = false;
    if (queue.length > 0) rest = Buffer.concat([rest, Buffer.from(`${queue.join('\n')}\n`)]);
    queue = [];
    rest = rest.subarray(written(descriptor, rest));
    queued = rest.length;
    if (rest.length > 0) retryLater();
    else if (dropped > reported) reportDropped();
  }

  function reportDropped(): void {
    const count = dropped - reported;
    reported = dropped;
    onResumed?.(count);
  }

  function retryLater(): void {
    if (isScheduled) return;
    isScheduled = true;
    setTimeout(flushLater, PAUSE).unref();
  }

  return {
    write,
    flush,
    countDropped: () => dropped,
  };
}

/** How many bytes the reader took before it stalled, was gone, or its disk was full. */
function written(descriptor: number, bytes: Buffer): number {
  let offset = 0;
  try {
    while (offset < bytes.length) offset += writeSync(descriptor, bytes, offset);
  } catch {
    // Whatever the reason, it may be gone by the next try.
  }
  return offset;
}
