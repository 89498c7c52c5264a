import fs from 'node:fs';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty, WriteStream } from 'node:tty';
import { parseJson } from '../response-content.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { findPlace, nameBeside } from './place.ts';

/** Where a command writes lines. */
export type Output = ReturnType<typeof outputTo>;

const LINE_FEED = 10;
/** In bytes: more than any change has. */
const MAX_LINE_BYTES = 65_536;
const POLL_MS = 50;

export const openStandardOutput = (): Output => inherit(1, 'standard output');
export const openStandardError = (): Output => inherit(2, 'standard error');

/**
 * Opens a path. A file is replaced when it is complete (`replace`), emptied now (`empty`) or continued (`append`). Anything
 * else is written to as it is open, also by a link or as /dev/fd/3.
 */
export async function openOutput(path: string, how: 'replace' | 'empty' | 'append'): Promise<Output> {
  const name = how === 'replace' ? path : `${path} cannot be written`;
  try {
    const { descriptor, place, stats } = findPlace(path);
    if (descriptor !== undefined) return inherit(descriptor, name);
    if (stats && !stats.isFile()) return outputTo(await openDevice(path, stats.isFIFO()), name);
    if (how === 'replace') return openDraft(place, stats && Number(stats.mode) & 0o7777, name);
    return outputTo(fs.openSync(place, how === 'append' ? 'a' : 'w'), name);
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

/** Each descriptor of the start of the process has one output: two handles of it would not work. */
const inherited = new Map<number, Output>();

function inherit(descriptor: number, name: string): Output {
  const output = inherited.get(descriptor) ?? outputTo(descriptor, name);
  inherited.set(descriptor, output);
  return output;
}

function outputTo(descriptor: number, name: string, commit = () => {}) {
  const stats = fs.fstatSync(descriptor);
  const isTerminal = isatty(descriptor);
  const hasReader = isTerminal || stats.isFIFO() || stats.isSocket();
  const stream = hasReader ? streamOf(descriptor, isTerminal) : undefined;
  let isCut = stats.isFile() && removeCutLine(descriptor);
  let written: Promise<void> = Promise.resolve();

  async function send(text: string): Promise<void> {
    if (stream)
      return new Promise((resolve, reject) => {
        stream.write(text, (error) => (error ? reject(error) : resolve()));
      });
    let rest = Buffer.from(isCut ? `\n${text}` : text);
    while (rest.length > 0) {
      // The system may take a part of the text only.
      const count = fs.writeSync(descriptor, rest);
      isCut = rest[count - 1] !== LINE_FEED;
      rest = rest.subarray(count);
    }
  }

  async function flush(): Promise<void> {
    await written;
    if (stats.isFile()) fs.fsyncSync(descriptor);
  }

  const fail = (error: unknown) => {
    throw failureOf(name, error);
  };
  return {
    /**
     * Resolves when the system has the text and what was written before it. A failure need not be awaited: `flush` and `close`
     * fail, too. `control` is for a terminal, on which the text controls nothing.
     */
    write(text: string, control = ''): Promise<void> {
      const sent = send(isTerminal ? control + escapeControls(text) : text);
      written = Promise.all([written, sent]).then(() => {}, fail);
      written.catch(() => {});
      return written;
    },
    /** Resolves when everything is written. For a file, this is when the disk has it. */
    flush: () => flush().catch(fail),
    /** Flushes, and puts a file that is replaced into its place. */
    close: () => flush().then(commit).catch(fail),
    /** In characters: what the reader of a pipe or a terminal has not taken. */
    waiting: () => stream?.writableLength ?? 0,
  };
}

function streamOf(descriptor: number, isTerminal: boolean): Socket | WriteStream {
  const standard = { 1: process.stdout, 2: process.stderr }[descriptor];
  const own = () =>
    isTerminal ? new WriteStream(descriptor) : new Socket({ fd: descriptor, readable: false });
  const stream: Socket & { _handle?: { setBlocking?(on: boolean): void } } = standard ?? own();
  // Each write reports its own error. Without a listener, the first one would end the process.
  stream.on('error', () => {});
  // By default a terminal that is stopped stops the whole process, with its signals.
  stream._handle?.setBlocking?.(false);
  return stream;
}

/** Characters that control a terminal are written in the form of JSON. */
function escapeControls(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Opens a device or a pipe. A pipe without a reader is waited for; Node itself would not see a signal meanwhile. */
async function openDevice(path: string, isPipe: boolean): Promise<number> {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = fs.constants;
  for (;;) {
    try {
      return fs.openSync(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    } catch (error) {
      if (!isPipe || (error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
      await sleep(POLL_MS);
    }
  }
}

/** The files that are not in their places. They are removed when the process ends. */
const drafts = new Set<string>();
process.on('exit', () => {
  for (const draft of drafts) fs.rmSync(draft, { force: true });
});

/** Opens a file beside the place of another one, with the mode of that, which it replaces in the end. */
function openDraft(place: string, mode: number | undefined, name: string): Output {
  const draft = nameBeside(place, `.${process.pid}.part`);
  // A killed process may have left the draft. In a container, the next process has the same id.
  fs.rmSync(draft, { force: true });
  const file = fs.openSync(draft, 'wx', mode);
  drafts.add(draft);
  if (mode !== undefined) fs.fchmodSync(file, mode);
  return outputTo(file, name, () => {
    fs.closeSync(file);
    fs.renameSync(draft, place);
    drafts.delete(draft);
  });
}

/**
 * Removes the beginning of an object, which a fault has cut off, from the end of a file that is appended to. Returns whether
 * the file still ends without a line end. Systems other than Linux lack these paths, and nothing is removed.
 */
function removeCutLine(descriptor: number): boolean {
  try {
    // The descriptor itself may be open for writing only.
    const file = fs.openSync(`/proc/self/fd/${descriptor}`, 'r');
    const { size } = fs.fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, MAX_LINE_BYTES));
    fs.readSync(file, bytes, 0, bytes.length, size - bytes.length);
    fs.closeSync(file);
    const end = (bytes.length === size ? '\n' : '') + bytes.toString('latin1');
    const info = fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8');
    const flags = Number.parseInt(/flags:\s*(\d+)/.exec(info)?.[1] ?? '', 8);
    const [, line] = /\n(\{[^\n]*)$/.exec(end) ?? [];
    if (line === undefined || parseJson(line) !== undefined || !(flags & fs.constants.O_APPEND))
      return !end.endsWith('\n');
    fs.ftruncateSync(descriptor, size - line.length);
  } catch {
    // The line stays.
  }
  return false;
}

function failureOf(name: string, error: unknown, exitCode?: ExitCode): Failure {
  if (error instanceof Failure) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  const isClosed = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(code);
  const reason = isClosed ? 'closed by its reader before everything was written' : reasonOf(error);
  return new Failure(`${name}: ${reason}`, exitCode);
}
