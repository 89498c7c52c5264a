import { AsyncResource } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Takes a line without its line feed; never throws and never waits. */
export type WriteLine = (line: string) => void;

/** Writes lines to a file descriptor, whatever becomes of its reader. */
export type LineWriter = {
  /** Queues a line; it is written with others of this turn of the event loop. */
  readonly write: WriteLine;
  /** Writes what is queued, as far as the reader takes it at this moment. */
  flush(): void;
  /** Writes what is queued, for as long as the reader goes on taking it, and for `seconds` at most. */
  end(seconds: number): Promise<void>;
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

/** In bytes: what a pipe takes whole or not at all (PIPE_BUF of Linux). */
const PIECE = 4096;

/** Milliseconds between two tries at a reader that takes nothing; doubled until it takes something. */
const PAUSE = { shortest: 1, longest: 50 };

/** Milliseconds at the end: between two tries, and until a reader that takes nothing is given up. */
const END = { pause: 5, patience: 200 };

/**
 * Lines for standard output. A stream would end the process when the reader dies or the disk is full, and
 * queue without bound when the reader stalls; so the descriptor is written to directly, which Node has set to
 * non-blocking where it is a pipe.
 */
export function createLineWriter({ descriptor = STANDARD_OUTPUT, onResumed }: Options = {}): LineWriter {
  // Once for all writers: in one process there may be many functions.
  if (descriptor === STANDARD_OUTPUT) process.stdout.off('error', ignoreError).on('error', ignoreError);
  let queue: string[] = [];
  let rest = Buffer.alloc(0);
  let queued = 0;
  let taken = 0;
  let dropped = 0;
  let reported = 0;
  let pause = PAUSE.shortest;
  let isScheduled = false;

  function write(line: string): void {
    const size = Buffer.byteLength(line) + 1;
    // One turn of the event loop may log more than the queue holds, and the reader be ready for all of it.
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

  /** Lines of many requests are written together: what is told then is of none of them. */
  const flushLater = AsyncResource.bind(() => {
    isScheduled = false;
    flush();
  });

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
    countDropped: () => dropped,
  };
}

/** A reader that has died is no error: lines are dropped and counted. */
function ignoreError(): void {}

/** How many bytes the reader took before it stalled, was gone, or its disk was full. */
function written(descriptor: number, bytes: Buffer): number {
  let offset = 0;
  try {
    while (offset < bytes.length) offset += writeSync(descriptor, bytes, offset, pieceAt(offset, bytes));
  } catch {
    // Whatever the reason, it may be gone by the next try.
  }
  return offset;
}

/** The size of a piece of whole lines, so that the output never ends within one that is no longer than a piece. */
function pieceAt(offset: number, bytes: Buffer): number {
  if (bytes.length - offset <= PIECE) return bytes.length - offset;
  const end = bytes.lastIndexOf('\n', offset + PIECE - 1) + 1;
  return (end > offset ? end : bytes.indexOf('\n', offset) + 1) - offset;
}
