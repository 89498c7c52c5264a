import { freeBytes } from '../../free-bytes.ts';

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A row as PostgreSQL sent it. `at` is the place of its first field, which begins with its length. */
export type ReceivedRow = { readonly bytes: Buffer; readonly at: number };

/** A column of a result. `read` is pg's conversion of a value from its text. */
export type Column = { readonly name: string; readonly read: (text: string) => unknown };

/** Receives rows: `at` is the place of the first field in `received`. */
export type RowReceiver = { takeRow(received: Received, at: number): void };

/** The type of a DataRow message. A message begins with its type and its length, which includes itself. */
const DATA_ROW = 68;
const HEADER_BYTES = 5;
const FIELD_COUNT_BYTES = 2;

/** Bytes that arrived together, and the same as Latin-1, once a row in text is read. */
export type Received = { readonly bytes: Buffer; characters?: string };

/**
 * Passes the rows of a connection to the receiver, once there is one, and everything else to pg. pg creates a string for
 * each field, an array and an object for each row, and emits two events, which costs a list three times the CPU time.
 * Call it before the first byte arrives, because pg may keep the first part of a later message.
 *
 * @see PostgreSQL, "Message Formats"
 */
export function takeRows(
  stream: NodeJS.ReadableStream,
  session: { readonly receiver: RowReceiver | undefined },
): void {
  // pg has listened since it connected.
  const [passToPg] = stream.listeners('data') as [(bytes: Buffer) => void];
  let incomplete: Buffer | undefined;

  stream.on('data', (arrived: Buffer) => {
    const bytes = incomplete ? Buffer.concat([incomplete, arrived]) : arrived;
    // `arrived` was copied into `bytes`. `incomplete` must stay, because rows refer to its memory.
    if (incomplete) freeBytes(arrived);
    const received: Received = { bytes };
    let [left, at] = [0, 0];
    while (at + HEADER_BYTES <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      if (bytes[at] === DATA_ROW && session.receiver) {
        if (left < at) passToPg(bytes.subarray(left, at));
        session.receiver.takeRow(received, at + HEADER_BYTES + FIELD_COUNT_BYTES);
        left = end;
      }
      at = end;
    }
    if (left < at) passToPg(bytes.subarray(left, at));
    incomplete = at < bytes.length ? bytes.subarray(at) : undefined;
  });
  stream.off('data', passToPg);
}

/** Reads the row whose fields begin at `at`, in text format. No string is created for a value in ASCII. */
export function readRow(columns: readonly Column[], received: Received, at: number): Row {
  const { bytes } = received;
  received.characters ??= bytes.toString('latin1');
  const { characters } = received;
  const row: Record<string, unknown> = {};
  let begin = at;
  for (const { name, read } of columns) {
    const length = bytes.readInt32BE(begin);
    begin += 4;
    if (length < 0) {
      row[name] = null;
      continue;
    }
    const end = begin + length;
    const isPart = isAsciiWithin(bytes, begin, end);
    row[name] = read(isPart ? characters.slice(begin, end) : bytes.toString('utf8', begin, end));
    begin = end;
  }
  return row;
}

function isAsciiWithin(bytes: Buffer, begin: number, end: number): boolean {
  let bits = 0;
  for (let at = begin; at < end; at += 1) bits |= bytes[at] as number;
  return bits < 0x80;
}
