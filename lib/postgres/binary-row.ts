import type { ReceivedRow } from './sessions/rows.ts';

/** Size in bytes. Each field of a row follows its length, which is -1 for null. */
const LENGTH_BYTES = 4;

/** The epoch of PostgreSQL's timestamps: 2000, in milliseconds since 1970. */
const EPOCH_MS = 946_684_800_000;

/**
 * Passes the first `count` fields of a row in PostgreSQL's binary format: where the value begins, and its length in bytes,
 * which is -1 for null.
 */
export function readFields(
  { bytes, offset }: ReceivedRow,
  count: number,
  read: (index: number, bytes: Buffer, begin: number, length: number) => void,
): void {
  let begin = offset;
  for (let index = 0; index < count; index += 1) {
    const length = bytes.readInt32BE(begin);
    begin += LENGTH_BYTES;
    read(index, bytes, begin, length);
    if (length > 0) begin += length;
  }
}

export function booleanAt(bytes: Buffer, offset: number): boolean {
  return bytes[offset] !== 0;
}

/**
 * Converts a `timestamptz`, 64 bits of microseconds, to milliseconds since 1970, the precision of the column. 2 ** 32 is
 * 4,294,967 thousands and 296. A number holds each millisecond that Date can represent, but not each microsecond.
 */
export function timestampAt(bytes: Buffer, offset: number): number {
  const upper = bytes.readInt32BE(offset);
  return upper * 4_294_967 + Math.round((upper * 296 + bytes.readUInt32BE(offset + 4)) / 1000) + EPOCH_MS;
}
