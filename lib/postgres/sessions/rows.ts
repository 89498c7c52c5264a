import { freeBytes } from '../../free-bytes.ts';
import { UnexpectedMessage } from './faults.ts';
import { DATA_ROW, HEADER_BYTES, int32At, MessageCheck } from './messages.ts';

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** A row as PostgreSQL sent it. `offset` is the place of its first field, which begins with its length. */
export type ReceivedRow = { readonly bytes: Buffer; readonly offset: number };

/** A column of a result. `read` is pg's conversion of a value from its text. */
export type Column = { readonly name: string; readonly read: (text: string) => unknown };

/** Receives rows: `offset` is the place of the first field in `received`. */
export type RowReceiver = { takeRow(received: Received, offset: number): void };

const FIELD_COUNT_BYTES = 2;

/** Bytes that arrived together, and the same as Latin-1, once a row in text is read. */
export type Received = { readonly bytes: Buffer; characters?: string };

/** What receives the messages of a connection. It is abandoned at the first one that is not what PostgreSQL sends. */
type MessageReceiver = {
  readonly receiver: RowReceiver | undefined;
  onBytes(): void;
  abandon(reason: Error): void;
};

/**
 * Passes the rows of a connection to the receiver, once there is one, and everything else to pg. pg creates a string for
 * each field, an array and an object for each row, and emits two events, which costs a list three times the CPU time.
 * Call it before the first byte arrives, because pg may keep the first part of a later message.
 */
export function takeRows(stream: NodeJS.ReadableStream, session: MessageReceiver): void {
  // pg has listened since it connected.
  const [passToPg] = stream.listeners('data') as [(bytes: Buffer) => void];
  const check = new MessageCheck();
  let incomplete: Buffer | undefined;

  function take(arrived: Buffer): void {
    const bytes = incomplete ? Buffer.concat([incomplete, arrived]) : arrived;
    // `arrived` was copied into `bytes`. `incomplete` must stay, because rows refer to its memory.
    if (incomplete) freeBytes(arrived);
    const received: Received = { bytes };
    let [left, offset] = [0, 0];
    while (offset + HEADER_BYTES <= bytes.length) {
      const end = check.findEnd(bytes, offset);
      if (end > bytes.length) break;
      if (bytes[offset] === DATA_ROW && session.receiver) {
        if (left < offset) passToPg(bytes.subarray(left, offset));
        session.receiver.takeRow(received, offset + HEADER_BYTES + FIELD_COUNT_BYTES);
        left = end;
      }
      offset = end;
    }
    if (left < offset) passToPg(bytes.subarray(left, offset));
    incomplete = offset < bytes.length ? bytes.subarray(offset) : undefined;
  }

  // A throw in a listener would end the process.
  stream.on('data', (arrived: Buffer) => {
    try {
      session.onBytes();
      take(arrived);
    } catch (fault) {
      session.abandon(
        fault instanceof Error && 'code' in fault ? fault : new UnexpectedMessage(String(fault)),
      );
    }
  });
  stream.off('data', passToPg);
}

/** @throws {UnexpectedMessage} if the row whose fields begin at `offset` has another number of fields than columns */
export function checkColumns(columns: readonly Column[], { bytes }: Received, offset: number): void {
  if (bytes.readInt16BE(offset - FIELD_COUNT_BYTES) !== columns.length)
    throw new UnexpectedMessage('a row does not have the columns of its statement');
}

/** Reads the row whose fields begin at `offset`, in text format. No string is created for a value in ASCII. */
export function readRow(columns: readonly Column[], received: Received, offset: number): Row {
  const { bytes } = received;
  received.characters ??= bytes.toString('latin1');
  const { characters } = received;
  const row: Record<string, unknown> = {};
  let begin = offset;
  for (const { name, read } of columns) {
    const length = int32At(bytes, begin);
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
  for (let offset = begin; offset < end; offset += 1) bits |= bytes[offset] as number;
  return bits < 0x80;
}
