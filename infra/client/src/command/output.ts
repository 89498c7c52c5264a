import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { EXIT, Failure, isMissing, reasonOf } from './failure.ts';

/** Where a command writes its data. */
export type Output = {
  write(text: string): Promise<void>;
  /** Ends when the disk has everything, if the output is a file. */
  flush(): void;
  /** Puts the file into its place. */
  commit(): void;
  /** Removes the file, if it is not in its place. */
  discard(): void;
};

/**
 * A file that is complete or does not exist: it is written beside its place, and `commit` renames it. A device or a pipe
 * is written directly.
 */
export function openFile(path: string): Output {
  const { place, isFile } = attempt(path, () => findPlace(path));
  const draft = isFile ? `${place}.${process.pid}.part` : place;
  const file = attempt(path, () => {
    // A killed process may have left the draft. In a container, the next process has the same id.
    if (isFile) rmSync(draft, { force: true });
    return openSync(draft, isFile ? 'wx' : 'w');
  });
  let state: 'open' | 'closed' | 'committed' = 'open';

  function close(): void {
    if (state !== 'open') return;
    state = 'closed';
    closeSync(file);
  }

  return {
    write: async (text) => attempt(path, () => writeFileSync(file, text)),
    flush: () => attempt(path, () => isFile && fsyncSync(file)),
    commit: () =>
      attempt(path, () => {
        close();
        if (isFile) renameSync(draft, place);
        state = 'committed';
      }),
    discard() {
      close();
      if (isFile && state !== 'committed') rmSync(draft, { force: true });
    },
  };
}

/** Replaces a small file. A reader finds the old text or the new one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const file = openFile(path);
  try {
    await file.write(text);
    file.flush();
    file.commit();
  } finally {
    file.discard();
  }
}

const STANDARD_OUTPUT = 1;

/** Standard output. `write` ends when the system has the text. */
export function openStandardOutput(): Output {
  const name = 'standard output';
  const isFile = attempt(name, () => fstatSync(STANDARD_OUTPUT).isFile());
  // Each write reports its own error. Without a listener, the first one would end the process.
  process.stdout.on('error', () => {});
  return {
    write: (text) =>
      new Promise((resolve, reject) => {
        process.stdout.write(text, (error) => (error ? reject(failureOf(name, error)) : resolve()));
      }),
    flush: () => attempt(name, () => isFile && fsyncSync(STANDARD_OUTPUT)),
    commit() {},
    discard() {},
  };
}

/**
 * Removes an incomplete last line that begins like `line` from the file to which standard output is appended. A command
 * that was killed may have left one, and the next line would continue it.
 */
export function removeTornLine(line: string): void {
  try {
    if (!fstatSync(STANDARD_OUTPUT).isFile()) return;
    // Standard output itself is open for writing only. Other systems than Linux have no such path: nothing is removed.
    const file = openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, 'r');
    const { size } = fstatSync(file);
    const end = Buffer.alloc(Math.min(size, MAX_LINE_LENGTH));
    readSync(file, end, 0, end.length, size - end.length);
    closeSync(file);
    const torn = end.subarray(end.lastIndexOf('\n') + 1);
    const beginning = torn.subarray(0, line.length).toString('latin1');
    if (torn.length > 0 && line.startsWith(beginning)) ftruncateSync(STANDARD_OUTPUT, size - torn.length);
  } catch {
    // The line stays.
  }
}

/** In bytes: more than any change has. */
const MAX_LINE_LENGTH = 65_536;

/**
 * Returns the function that writes lines to a file: a new one beside the file `input` that is read, otherwise at the end, to
 * the disk.
 */
export function openLines(path: string, input?: Stats): (text: string) => void {
  try {
    const existing = statSync(path, { throwIfNoEntry: false });
    if (input && existing?.dev === input.dev && existing.ino === input.ino)
      throw new Failure('it is the file that is imported');
    const descriptor = openSync(path, input ? 'w' : 'a');
    return (text) => {
      try {
        writeFileSync(descriptor, text);
        if (!input) fsyncSync(descriptor);
      } catch (error) {
        throw new Failure(`${path} cannot be written: ${reasonOf(error)}`);
      }
    };
  } catch (error) {
    throw new Failure(`${path} cannot be written: ${reasonOf(error)}`, EXIT.wrongUse);
  }
}

/** A link leads to the file that is replaced. A path that does not exist is a new file. */
function findPlace(path: string): { readonly place: string; readonly isFile: boolean } {
  try {
    const place = realpathSync(path);
    return { place, isFile: statSync(place).isFile() };
  } catch (error) {
    if (!isMissing(error)) throw error;
    return { place: path, isFile: true };
  }
}

function attempt<Value>(name: string, work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    throw failureOf(name, error);
  }
}

function failureOf(name: string, error: unknown): Failure {
  if (error instanceof Error && 'code' in error && error.code === 'EPIPE')
    return new Failure(`${name}: closed by its reader before everything was written`);
  return new Failure(`${name}: ${reasonOf(error)}`);
}
