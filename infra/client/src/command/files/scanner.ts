import { EXIT, type ExitCode, Failure } from '../failure.ts';
import type { ColumnMap } from './columns.ts';
import type { Entry } from './entry.ts';

/** In bytes. A longer line, element or record is refused, so that it does not fill the memory. */
export const MAX_BYTES = 1_048_576;

/** The text of a file, in parts. `readLine` returns the line that is read, for a message. */
export type ReadText = (readLine: () => number) => AsyncIterable<string>;

/** Finds the users in the text of a file. LF, CR and CRLF end a line. */
export abstract class Scanner {
  /** The line that is read, from 1. */
  protected line = 1;
  /** The line at which the record or element begins that is read. */
  protected begin = 1;
  /** The position of the last record or element. */
  protected position = 0;
  protected readonly found: Entry[] = [];
  protected readonly map: ColumnMap;

  constructor(map: ColumnMap) {
    this.map = map;
  }

  /** Adds to `found` what ends in this text. No CRLF and no escape goes on in the next one. */
  protected abstract push(text: string): void;
  protected abstract end(): void;

  /** Whether users may be found: the head of the file is read. */
  protected hasHead(): boolean {
    return true;
  }

  /** What is found, in parts, before a fault is thrown. */
  async *scan(read: ReadText): AsyncGenerator<readonly Entry[], void> {
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

  *#find(work: () => void): Generator<readonly Entry[], void> {
    try {
      work();
    } finally {
      if (this.hasHead()) yield this.found.splice(0);
    }
  }

  protected fault(text: string, line = this.begin, exitCode: ExitCode = EXIT.failed): Failure {
    return new Failure(`Line ${line}: ${text}`, exitCode);
  }
}

/** A return, or a backslash that escapes what follows. */
const OPEN_END = /\r$|\\$(?<=(?<!\\)\\(?:\\\\)*)/;

/** Whether a text that is kept has too many bytes. */
export function isTooLong(length: number, text: string): boolean {
  return length > MAX_BYTES || (length * 3 > MAX_BYTES && Buffer.byteLength(text) > MAX_BYTES);
}
