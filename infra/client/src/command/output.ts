import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty, WriteStream } from 'node:tty';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { findPlace, inFolder, nameBeside } from './place.ts';

/**
 * Where a command writes lines. After the first failure nothing more is written. A failed `write` need not be awaited: `flush`
 * and `close` fail with the same {@link Failure}.
 */
export type Output = {
  /** Resolves when the system has the text. */
  write(text: string): Promise<void>;
  /** Resolves when everything is written: of a file, when the disk has it. */
  flush(): Promise<void>;
  /** Flushes, and puts a file that is replaced into its place. */
  close(): Promise<void>;
};

/** Standard output. */
export const openStandardOutput = (): Output => outputTo(inherit(1), 'standard output');
/** Standard error. */
export const openStandardError = (): Output => outputTo(inherit(2), 'standard error');

/**
 * Opens a path for writing. A file is replaced when it is complete (`replace`), emptied now (`empty`) or continued (`append`).
 * Anything else is written to as it is open, also by a link or as /dev/fd/3.
 */
export async function openOutput(path: string, how: 'replace' | 'empty' | 'append'): Promise<Output> {
  const name = how === 'replace' ? path : `${path} cannot be written`;
  try {
    const { descriptor, folder, name: file, stats } = findPlace(path);
    if (descriptor !== undefined) return outputTo(inherit(descriptor), name);
    if (stats && !stats.isFile()) return outputTo(new Sink(await openDevice(path, stats.isFIFO())), name);
    if (how === 'replace') return openDraft(folder, file, stats && Number(stats.mode), name);
    const opened = inFolder(folder, (at) => openSync(at + file, how === 'append' ? 'a' : 'w'));
    return outputTo(new Sink(opened), name);
  } catch (error) {
    throw failureOf(name, error, how === 'replace' ? EXIT.failed : EXIT.wrongUse);
  }
}

/** Replaces a small file. A reader finds the old text or the new one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const file = await openOutput(path, 'replace');
  await file.write(text);
  await file.close();
}

/** @throws {Failure} if a file cannot be written beside its place */
export async function tryToReplace(path: string): Promise<void> {
  const file = await openOutput(path, 'replace');
  await file.write('x'.repeat(1000));
  await file.flush();
  removeDrafts();
}

/** An open descriptor, to which every byte is written: a short write is continued. */
export class Sink {
  readonly isTerminal: boolean;
  readonly #descriptor: number;
  readonly #isFile: boolean;
  /** A pipe, a socket or a terminal, whose reader may stall. A file has none. */
  readonly #stream: Socket | WriteStream | undefined;
  /** Whether the file ends within a line, because of a fault. */
  #isCut: boolean;

  constructor(descriptor: number) {
    const stats = fstatSync(descriptor);
    this.#descriptor = descriptor;
    this.#isFile = stats.isFile();
    this.isTerminal = isatty(descriptor);
    const isStream = this.isTerminal || stats.isFIFO() || stats.isSocket();
    this.#stream = isStream ? streamOf(descriptor, this.isTerminal) : undefined;
    this.#isCut = this.#isFile && removeCutLine(descriptor);
  }

  /** In characters: what the reader has not taken. */
  get waiting(): number {
    return this.#stream?.writableLength ?? 0;
  }

  write(text: string): Promise<void> {
    const stream = this.#stream;
    if (stream)
      return new Promise((resolve, reject) => {
        stream.write(text, (error) => (error ? reject(error) : resolve()));
      });
    const bytes = Buffer.from(this.#isCut ? `\n${text}` : text);
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(this.#descriptor, bytes, written);
    } finally {
      if (written > 0) this.#isCut = bytes[written - 1] !== LINE_FEED;
    }
    return Promise.resolve();
  }

  sync(): void {
    if (this.#isFile) fsyncSync(this.#descriptor);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** Two handles of one descriptor would not work. */
const inherited = new Map<number, Sink>();

/** A descriptor with which the process was started. */
export function inherit(descriptor: number): Sink {
  const sink = inherited.get(descriptor) ?? new Sink(descriptor);
  inherited.set(descriptor, sink);
  return sink;
}

function streamOf(descriptor: number, isTerminal: boolean): Socket | WriteStream {
  const standard = { 1: process.stdout, 2: process.stderr }[descriptor];
  const own = () =>
    isTerminal ? new WriteStream(descriptor) : new Socket({ fd: descriptor, readable: false });
  const stream = standard ?? own();
  // Each write reports its own error. Without a listener, the first one would end the process.
  stream.on('error', () => {});
  // Node writes to a terminal without regard to other work. A terminal that is stopped would stop the signals, too.
  (stream as unknown as { _handle?: { setBlocking?(on: boolean): void } })._handle?.setBlocking?.(false);
  return stream;
}

function outputTo(sink: Sink, name: string, commit = () => {}): Output {
  let failure: Failure | undefined;
  let last: Promise<void> = Promise.resolve();

  async function attempt(work: () => Promise<void> | void): Promise<void> {
    try {
      if (!failure) await work();
    } catch (error) {
      failure ??= failureOf(name, error);
    }
    if (failure) throw failure;
  }

  return {
    write(text) {
      last = attempt(() => sink.write(sink.isTerminal ? escapeControls(text) : text));
      last.catch(() => {});
      return last;
    },
    async flush() {
      await last;
      await attempt(() => sink.sync());
    },
    async close() {
      await this.flush();
      await attempt(commit);
    },
  };
}

/** The text without the characters that control a terminal, in the form of JSON. */
export function escapeControls(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Opens a device or a pipe. A pipe without a reader is waited for, without keeping signals waiting. */
async function openDevice(path: string, isPipe: boolean): Promise<number> {
  for (;;) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    } catch (error) {
      if (!isPipe || (error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
      await sleep(POLL_MS);
    }
  }
}

const POLL_MS = 50;

/** The files that are not in their places, by folder and name. They are removed when the process ends. */
const drafts = new Map<string, readonly [folder: string, name: string]>();
process.on('exit', removeDrafts);

function removeDrafts(): void {
  for (const [folder, name] of drafts.values()) inFolder(folder, (at) => rmSync(at + name, { force: true }));
  drafts.clear();
}

/** Opens a file beside the place of another one, with the mode of that, which it replaces in the end. */
function openDraft(folder: string, name: string, mode: number | undefined, shown: string): Output {
  const draft = nameBeside(name, `.${process.pid}.part`);
  const file = inFolder(folder, (at) => {
    // A killed process may have left the draft. In a container, the next process has the same id.
    rmSync(at + draft, { force: true });
    drafts.set(`${folder}/${draft}`, [folder, draft]);
    return openSync(at + draft, 'wx', mode);
  });
  if (mode !== undefined) fchmodSync(file, mode & 0o7777);
  const sink = new Sink(file);
  return outputTo(sink, shown, () => {
    sink.close();
    inFolder(folder, (at) => renameSync(at + draft, at + name));
    drafts.delete(`${folder}/${draft}`);
  });
}

const LINE_FEED = 10;
/** In bytes: more than any change has. */
const MAX_LINE_BYTES = 65_536;

/**
 * Removes a last line of JSON that a fault has cut off from a file that is appended to, so that no line continues it. Returns
 * whether the file still ends without a line end.
 */
function removeCutLine(descriptor: number): boolean {
  try {
    // The descriptor itself may be open for writing only. Systems other than Linux have no such path: nothing is removed.
    const file = openSync(`/proc/self/fd/${descriptor}`, 'r');
    const { size } = fstatSync(file);
    const end = Buffer.alloc(Math.min(size, MAX_LINE_BYTES));
    readSync(file, end, 0, end.length, size - end.length);
    closeSync(file);
    const line = end.subarray(end.lastIndexOf(LINE_FEED) + 1);
    const isWhole = line.length < end.length || end.length === size;
    const [, flags = '0'] =
      /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')) ?? [];
    const isAppended = (Number.parseInt(flags, 8) & constants.O_APPEND) !== 0;
    if (!isWhole || !isAppended || !isCutJson(line.toString())) return line.length > 0;
    ftruncateSync(descriptor, size - line.length);
  } catch {
    // The line stays.
  }
  return false;
}

/** Whether a line is the beginning of an object, and not a whole one that lacks its line end. */
function isCutJson(line: string): boolean {
  try {
    JSON.parse(line);
    return false;
  } catch {
    return line.startsWith('{');
  }
}

function failureOf(name: string, error: unknown, exitCode?: ExitCode): Failure {
  if (error instanceof Failure) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (['EPIPE', 'ERR_STREAM_DESTROYED', 'ECONNRESET'].includes(code))
    return new Failure(`${name}: closed by its reader before everything was written`, exitCode);
  return new Failure(`${name}: ${reasonOf(error)}`, exitCode);
}
