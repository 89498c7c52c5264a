import { freeBytes } from '../../free-bytes.ts';

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A row as PostgreSQL sent it. `at` is the place of its first field, which begins with its length. */
export type ReceivedRow = { readonly bytes: Buffer; readonly at: number };

/** A column of a result. `read` converts a value from its text; undefined if the text is the value. */
export type Column = {
  readonly name: string;
  /** Whether every value of its type is ASCII text. */
  readonly isAscii: boolean;
  readonly read: ((text: string) => unknown) | undefined;
};

/** Receives a row: `at` is the place of its first field in `received`. Returns false to leave the row to pg. */
export type TakeRow = (received: Received, at: number) => boolean;

type Field = { readonly name: string; readonly dataTypeID: number };

/** Object ids of types. The value of a bigint is a text, as in pg. */
const [BOOLEAN, BIGINT, SMALLINT, INTEGER, TEXT, VARCHAR, UUID] = [16, 20, 21, 23, 25, 1043, 2950];
const TEXTS: readonly number[] = [BIGINT, TEXT, VARCHAR, UUID];
const ASCII: readonly number[] = [BOOLEAN, BIGINT, SMALLINT, INTEGER, UUID];

/** The type of a DataRow message. A message begins with its type and its length, which includes itself. */
const DATA_ROW = 68;
const HEADER_BYTES = 5;
const FIELD_COUNT_BYTES = 2;

/** Bytes that arrived together. */
export class Received {
  readonly bytes: Buffer;
  #characters: string | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** The same bytes as Latin-1. A value in ASCII is a part of this string, so no string is created for it. */
  get characters(): string {
    this.#characters ??= this.bytes.toString('latin1');
    return this.#characters;
  }
}

/**
 * Passes the rows of a connection to `take`, and everything else to pg. pg creates a string for each field, an array and
 * an object for each row, and emits two events, which costs a list three times the CPU time. Call it before the first
 * byte arrives, because pg may keep the first part of a later message.
 *
 * @see PostgreSQL, "Message Formats"
 */
export function takeRows(stream: NodeJS.ReadableStream, take: TakeRow): void {
  // pg has listened since it connected.
  const [passToPg] = stream.listeners('data') as [(bytes: Buffer) => void];
  let incomplete: Buffer | undefined;

  stream.on('data', (arrived: Buffer) => {
    const bytes = incomplete ? Buffer.concat([incomplete, arrived]) : arrived;
    // Its bytes were copied. Rows refer to those that `incomplete` is a part of.
    if (incomplete) freeBytes(arrived);
    const received = new Received(bytes);
    let [left, at] = [0, 0];
    while (at + HEADER_BYTES <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      if (bytes[at] === DATA_ROW) {
        if (left < at) passToPg(bytes.subarray(left, at));
        left = take(received, at + HEADER_BYTES + FIELD_COUNT_BYTES) ? end : at;
      }
      at = end;
    }
    if (left < at) passToPg(bytes.subarray(left, at));
    incomplete = at < bytes.length ? bytes.subarray(at) : undefined;
  });
  stream.off('data', passToPg);
}

/** The columns that PostgreSQL describes. `readerOf` returns pg's conversion from the text of a type. */
export function describeColumns(
  fields: readonly Field[],
  readerOf: (type: number) => (text: string) => unknown,
): readonly Column[] {
  return fields.map(({ name, dataTypeID }) => ({
    name,
    isAscii: ASCII.includes(dataTypeID),
    read: TEXTS.includes(dataTypeID) ? undefined : readerOf(dataTypeID),
  }));
}

/** Reads the row whose fields begin at `at`, in text format. */
export function readRow(columns: readonly Column[], { bytes, characters }: Received, at: number): Row {
  const row: Record<string, unknown> = {};
  let begin = at;
  for (const { name, isAscii, read } of columns) {
    const length = bytes.readInt32BE(begin);
    begin += 4;
    if (length < 0) {
      row[name] = null;
      continue;
    }
    const end = begin + length;
    const isPart = isAscii || isAsciiWithin(bytes, begin, end);
    const text = isPart ? characters.slice(begin, end) : bytes.toString('utf8', begin, end);
    row[name] = read ? read(text) : text;
    begin = end;
  }
  return row;
}

function isAsciiWithin(bytes: Buffer, begin: number, end: number): boolean {
  let bits = 0;
  for (let at = begin; at < end; at += 1) bits |= bytes[at] as number;
  return bits < 0x80;
}
