import { type Piece, pieceOf } from './json-writer.ts';

const DAY_MS = 86_400_000;

/** Number of days whose text is cached. A day beyond them takes 1 microsecond. */
const MAX_REMEMBERED_DAYS = 256;

const ZERO = 0x30;
/** The two decimal digits of each number below 100, as a number of 16 bits. */
const PAIRS = Uint16Array.from({ length: 100 }, (_, number) =>
  Buffer.from(String(number).padStart(2, '0')).readUInt16BE(),
);

const kept: { readonly day: number; readonly piece: Piece }[] = [];

/** A time in milliseconds since 1970 as the text of Date's `toISOString`, at a quarter of its cost. */
export function isoTime(milliseconds: number): string {
  const { bytes, length } = pieceOfTime(milliseconds);
  return bytes.toString('latin1', 1, length - 1);
}

/**
 * A time as a JSON string. The piece is valid until the next call. Its places are counted from its end, because a year
 * has four digits or six.
 *
 * @throws {RangeError} beyond the range of Date
 */
export function pieceOfTime(milliseconds: number): Piece {
  const day = Math.floor(milliseconds / DAY_MS);
  const piece = pieceOfDay(day);
  const { words, length } = piece;
  const rest = (milliseconds - day * DAY_MS) | 0;
  const seconds = (rest / 1000) | 0;
  const minutes = (seconds / 60) | 0;
  const hours = (minutes / 60) | 0;
  const thousandths = rest - seconds * 1000;
  const tenths = (thousandths / 100) | 0;
  words.setUint16(length - 14, PAIRS[hours] as number);
  words.setUint16(length - 11, PAIRS[minutes - hours * 60] as number);
  words.setUint16(length - 8, PAIRS[seconds - minutes * 60] as number);
  words.setUint8(length - 5, ZERO + tenths);
  words.setUint16(length - 4, PAIRS[thousandths - tenths * 100] as number);
  return piece;
}

function pieceOfDay(day: number): Piece {
  const place = day & (MAX_REMEMBERED_DAYS - 1);
  const known = kept[place];
  if (known?.day === day) return known.piece;
  const piece = pieceOf(`"${new Date(day * DAY_MS).toISOString()}"`);
  kept[place] = { day, piece };
  return piece;
}
