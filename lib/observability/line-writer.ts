import { AsyncResource } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Writes a line, given without its line feed. It never throws and never waits. */
export type WriteLine = (line: string) => void;

const STANDARD_OUTPUT = 1;

/** A reader that stalls for longer loses lines. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** A pipe accepts a piece of this size as a whole or not at all (PIPE_BUF of Linux). */
const PIECE_BYTES = 4096;

/** Between two attempts at a stalled reader, doubled until the reader accepts something. */
const PAUSE_MS = { shortest: 1, longest: 50 };

/** At the end: between two attempts, and until a stalled reader is given up. */
const END_MS = { pause: 5, patience: 200 };

/**
 * Writes lines to standard output or another descriptor, whatever happens to its reader: see README.md. The lines are
 * written directly to the descriptor, which Node has set to non-blocking if it is a pipe. sonic-boom 5.0.2 loses lines of
 * a slow reader, and of bursts into a file.
 */
export class LineWriter {
  dropped = 0;
  /** Called when the reader accepts lines again, after `count` of them were dropped. */
  onResumed: ((count: number) => void) | undefined;
  readonly #descriptor: number;
  #queue: string[] = [];
  #rest = Buffer.alloc(0);
  #queuedBytes = 0;
  #takenBytes = 0;
  #reported = 0;
  #pause = PAUSE_MS.shortest;
  #isScheduled = false;
  /** Lines of many requests are written together, so a failure here belongs to none of these requests. */
  readonly #flushLater = AsyncResource.bind(() => {
    this.#isScheduled = false;
    this.flush();
  });

  constructor(descriptor = STANDARD_OUTPUT) {
    this.#descriptor = descriptor;
    // Once for all writers: one process may have many functions.
    if (descriptor === STANDARD_OUTPUT) process.stdout.off('error', ignoreError).on('error', ignoreError);
  }

  /** Queues a line, which is written together with the other lines of this pass of the event loop. */
  readonly write: WriteLine = (line) => {
    const size = Buffer.byteLength(line) + 1;
    // One pass of the event loop may log more than the queue holds, although the reader is ready for all of it.
    if (this.#queuedBytes + size > MAX_QUEUED_BYTES && this.#rest.length === 0) this.flush();
    if (this.#queuedBytes + size > MAX_QUEUED_BYTES) {
      this.dropped += 1;
      return;
    }
    this.#queue.push(line);
    this.#queuedBytes += size;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flushLater);
  };

  /** Writes the queued lines, as far as the reader accepts them at this moment. */
  flush(): void {
    const before = this.#takenBytes;
    this.#writeRest();
    if (this.#rest.length === 0 && this.#queue.length > 0) {
      this.#rest = Buffer.from(`${this.#queue.join('\n')}\n`);
      this.#queue = [];
      this.#writeRest();
    }
    if (this.#takenBytes > before) this.#pause = PAUSE_MS.shortest;
    if (this.#queuedBytes > 0) this.#retryLater();
    else if (this.dropped > this.#reported) {
      const count = this.dropped - this.#reported;
      this.#reported = this.dropped;
      this.onResumed?.(count);
    }
  }

  /** Writes the queued lines while the reader accepts them, for `seconds` at most. */
  async end(seconds: number): Promise<void> {
    const deadline = performance.now() + seconds * 1000;
    this.flush();
    let stalled = 0;
    while (this.#queuedBytes > 0 && stalled < END_MS.patience && performance.now() < deadline) {
      const before = this.#takenBytes;
      await sleep(END_MS.pause);
      this.flush();
      stalled = this.#takenBytes > before ? 0 : stalled + END_MS.pause;
    }
  }

  #writeRest(): void {
    const size = written(this.#descriptor, this.#rest);
    this.#rest = this.#rest.subarray(size);
    this.#queuedBytes -= size;
    this.#takenBytes += size;
  }

  #retryLater(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setTimeout(this.#flushLater, this.#pause).unref();
    this.#pause = Math.min(2 * this.#pause, PAUSE_MS.longest);
  }
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
  if (bytes.length - offset <= PIECE_BYTES) return bytes.length - offset;
  const end = bytes.lastIndexOf('\n', offset + PIECE_BYTES - 1) + 1;
  return (end > offset ? end : bytes.indexOf('\n', offset) + 1) - offset;
}
