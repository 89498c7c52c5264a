import type { Failure } from '../failure.ts';

/** In bytes. A longer line, element or record is refused, so that it does not fill the memory. */
export const MAX_BYTES = 1_048_576;

/** Finds the users in the text of a file, part by part. */
export type Scanner<Found> = {
  /** Why the text after what was found cannot be read. */
  readonly fault: Failure | undefined;
  /** The line that is read, from 1. */
  readonly line: number;
  push(text: string): Found[];
  /** What is found at the end of the file. */
  end(): Found[];
};

/** Whether a text of this many characters has too many bytes. */
export function isTooLong(length: number, read: () => string): boolean {
  return length * 3 > MAX_BYTES && Buffer.byteLength(read()) > MAX_BYTES;
}

/** What a scanner finds in a text, in parts. */
export async function* scan<Found>(
  scanner: Scanner<Found>,
  read: (readLine: () => number) => AsyncIterable<string>,
): AsyncGenerator<readonly Found[], void> {
  for await (const text of read(() => scanner.line)) {
    yield scanner.push(text);
    if (scanner.fault) throw scanner.fault;
  }
  yield scanner.end();
  if (scanner.fault) throw scanner.fault;
}
