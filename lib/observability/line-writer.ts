import { AsyncResource } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Writes a line, given without its line feed. It never throws and never waits. */
export type WriteLine = (line: string) => void;

/** Writes lines to a file descriptor, whatever happens to its reader. */
export type LineWriter = ReturnType<typeof createLineWriter>;

type Options = {
  readonly descriptor?: number | undefined;
  /** Called when the reader accepts lines again, after `count` of them were dropped. */
  readonly onResumed?: (count: number) => void;
};

const STANDARD_OUTPUT = 1;

/** In bytes. A reader that stalls for longer loses lines. */
const QUEUE_LIMIT = 1024 * 1024;

/** In bytes: a pipe accepts a piece of this size as a whole or not at all (PIPE_BUF of Linux). */
const PIECE = 4096;

/** Milliseconds between two attempts at a stalled reader, doubled until the reader accepts something. */
const PAUSE = { shortest: 1, longest: 50 };

/** Milliseconds at the end: between two attempts, and until a stalled reader is given up. */
const END = { pause: 5, patience: 200 };

/**
 * Creates a writer for standard output. A stream would end the process when its reader dies or the disk is full, and
 * would queue without bound when its reader stalls. Therefore the lines are written directly to the descriptor, which
 * Node has set to non-blocking if it is a pipe. sonic-boom 5.0.2 was tried: it loses lines of a slow reader, and of
 * bursts into a file.
 */
export function createLineWriter({ descriptor = STANDARD_OUTPUT, onResumed }: Options = {}) {
  // Once for all writers: one process may have many functions.
  if (descriptor === STANDARD_OUTPUT) process.stdout.off('error', ignoreError).on('error', ignoreError);
  let queue: string[] = [];
  let rest = Buffer.alloc(0);
  let queued = 0;
  let taken = 0;
  let dropped = 0;
  let reported = 0;
  let pause = PAUSE.shortest;
  let isScheduled = false;

  /** Queues a line, which is written together with the other lines of this turn of the event loop. */
  function write(line: string): void {
    const size = Buffer.byteLength(line) + 1;
    // One turn of the event loop may log more than the queue holds, although the reader is ready for all of it.
    if (queued + size > QUEUE_LIMIT && rest.length === 0) flush();
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

  /** Lines of many requests are written together, so a failure here belongs to none of these requests. */
  const flushLater = AsyncResource.bind(() => {
    isScheduled = false;
    flush();
  });

  /** Writes the queued lines, as far as the reader accepts them at this moment. */
  function flush(): void {
    const before = taken;
    writeRest();
    if (rest.length === 0 && queue.length > 0) {
      rest = Buffer.from(`${queue.join('\n')}\n`);
      queue = [];
      writeRest();
    }
    if (taken > before) pause = PAUSE.shortest;
    if (queued > 0) retryLater();
    else if (dropped > reported) reportDropped();
  }

  function writeRest(): void {
    const size = written(descriptor, rest);
    rest = rest.subarray(size);
    queued -= size;
    taken += size;
  }

  function reportDropped(): void {
    const count = dropped - reported;
    reported = dropped;
    onResumed?.(count);
  }

  function retryLater(): void {
    if (isScheduled) return;
    isScheduled = true;
    setTimeout(flushLater, pause).unref();
    pause = Math.min(2 * pause, PAUSE.longest);
  }

  /** Writes the queued lines while the reader accepts them, for `seconds` at most. */
  async function end(seconds: number): Promise<void> {
    const deadline = performance.now() + seconds * 1000;
    flush();
    let stalled = 0;
    while (queued > 0 && stalled < END.patience && performance.now() < deadline) {
      const before = taken;
      await sleep(END.pause);
      flush();
      stalled = taken > before ? 0 : stalled + END.pause;
    }
  }

  return {
    write,
    flush,
    end,
    /** Number of lines dropped so far. */
    countDropped: () => dropped,
  };
}

/** A dead reader is not an error: lines are dropped and counted. */
function ignoreError(): void {}

/** Number of bytes that the reader accepted before it stalled or died, or its disk was full. */
function written(descriptor: number, bytes: Buffer): number {
  let offset = 0;
  try {
    while (offset < bytes.length) offset += writeSync(descriptor, bytes, offset, pieceAt(offset, bytes));
  } catch {
    // The reason may be gone at the next attempt.
  }
  return offset;
}

/** Size of a piece of whole lines. The output therefore never ends within a line that fits a piece. */
function pieceAt(offset: number, bytes: Buffer): number {
  if (bytes.length - offset <= PIECE) return bytes.length - offset;
  const end = bytes.lastIndexOf('\n', offset + PIECE - 1) + 1;
  return (end > offset ? end : bytes.indexOf('\n', offset) + 1) - offset;
}
