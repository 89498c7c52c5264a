import { type Piece, pieceOf } from './json-writer.ts';

/** In milliseconds. */
const MINUTE = 60_000;

/**
 * Number of minutes whose text is cached. The users and changes of a page belong to few minutes, or to those of the page
 * before. With one cached minute a list of 100 took the server 1.8 times as long, because an update and a creation
 * alternate.
 */
const KEPT = 256;

const ZERO = 0x30;
/** The places of the milliseconds and seconds in the JSON of a time: from its end, the last digit first. */
const DIGITS = [3, 4, 5, 7, 8] as const;

const kept: { readonly minute: number; readonly piece: Piece }[] = [];

/** A time in milliseconds since 1970 as the text of Date's `toISOString`, at a quarter of its cost. */
export function isoTime(milliseconds: number): string {
  const { bytes, length } = pieceOfTime(milliseconds);
  return bytes.toString('latin1', 1, length - 1);
}

/**
 * A time as a JSON string. The piece is valid until the next call. Within a cached minute only the digits of seconds and
 * milliseconds are written again.
 *
 * @throws {RangeError} beyond the range of Date
 */
export function pieceOfTime(milliseconds: number): Piece {
  const minute = Math.floor(milliseconds / MINUTE);
  const piece = pieceOfMinute(minute);
  let rest = (milliseconds - minute * MINUTE) | 0;
  for (let index = 0; index < DIGITS.length; index += 1) {
    const tenth = (rest / 10) | 0;
    piece.bytes[piece.length - (DIGITS[index] as number)] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
  return piece;
}

function pieceOfMinute(minute: number): Piece {
  const place = minute & (KEPT - 1);
  const known = kept[place];
  if (known?.minute === minute) return known.piece;
  const piece = pieceOf(`"${new Date(minute * MINUTE).toISOString()}"`);
  kept[place] = { minute, piece };
  return piece;
}
