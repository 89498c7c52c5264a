import { EXIT, type ExitCode, Failure } from '../failure.ts';

/** In bytes. A longer line, element or record is refused, so that it does not fill the memory. */
export const MAX_BYTES = 1_048_576;

/** The text of a file, in parts. `readLine` returns the line that is read, for a message. */
export type ReadText = (readLine: () => number) => AsyncIterable<string>;

/** Finds the users in the text of a file. LF, CR and CRLF end a line. */
export abstract class Scanner<Found> {
  /** The line that is read, from 1. */
  protected line: number;
  protected readonly found: Found[] = [];

  constructor(line = 1) {
    this.line = line;
  }

  /** Adds to `found` what ends in this text. No CRLF and no escape goes on in the next one. */
  protected abstract push(text: string): void;
  protected abstract end(): void;

  /** What is found, in parts, before a fault is thrown. */
  async *scan(read: ReadText): AsyncGenerator<readonly Found[], void> {
    let rest = '';
    for await (const part of read(() => this.line)) {
      const text = rest + part;
      [rest] = OPEN_END.exec(text) ?? [''];
      yield* this.#find(() => this.push(text.slice(0, text.length - rest.length)));
    }
    yield* this.#find(() => {
      this.push(rest);
      this.end();
    });
  }

  *#find(work: () => void): Generator<readonly Found[], void> {
    try {
      work();
    } finally {
      yield this.found.splice(0);
    }
  }

  protected fault(text: string, line = this.line, exitCode: ExitCode = EXIT.failed): Failure {
    return new Failure(`Line ${line}: ${text}`, exitCode);
  }
}

/** A return, or a backslash that escapes what follows. */
const OPEN_END = /\r$|\\$(?<=(?<!\\)\\(?:\\\\)*)/;

/** Whether a text that is kept has too many bytes. */
export function isTooLong(length: number, text: string): boolean {
  return length > MAX_BYTES || (length * 3 > MAX_BYTES && Buffer.byteLength(text) > MAX_BYTES);
}
