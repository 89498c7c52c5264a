import { keptByMinute, MINUTE } from './kept-by-minute.ts';

/** A piece is copied by so many bytes at once: of a page of 100 users byte by byte took writing it a fifth longer. */
export const WORD = 4;

/** What is written into a page as it is: its bytes, filled up to be whole words, and how many of them count. */
export type Piece = { readonly words: DataView; readonly length: number };

const ZERO = 0x30;
/** Where the seconds and the milliseconds of a moment's text stand, from its end. */
const [SECONDS, MILLISECONDS] = [7, 4];

/** A text in ASCII. */
export function pieceOf(text: string): Piece {
  const bytes = new Uint8Array(Math.ceil(text.length / WORD) * WORD);
  bytes.set(Buffer.from(text));
  return { words: new DataView(bytes.buffer), length: text.length };
}

const pieceOfMinute = keptByMinute(pieceOf);

/** Most users were never changed. */
let last = Number.NaN;
let lastPiece = pieceOf('');

/**
 * A moment in milliseconds since 1970, as Date's `toISOString`; until the next one is asked for. Within a minute that is
 * kept only the end is written anew.
 */
export function pieceOfMoment(milliseconds: number): Piece {
  if (milliseconds === last) return lastPiece;
  const minute = Math.floor(milliseconds / MINUTE);
  lastPiece = pieceOfMinute(minute);
  writeEnd(lastPiece, (milliseconds - minute * MINUTE) | 0);
  last = milliseconds;
  return lastPiece;
}

/** The milliseconds since the minute began; whole numbers of 32 bits, which take V8 the least. */
function writeEnd({ words, length }: Piece, sinceMinute: number): void {
  const seconds = (sinceMinute / 1000) | 0;
  const milliseconds = sinceMinute - seconds * 1000;
  const [tens, hundreds, hundredths] = [
    (seconds / 10) | 0,
    (milliseconds / 100) | 0,
    (milliseconds / 10) | 0,
  ];
  words.setUint8(length - SECONDS, ZERO + tens);
  words.setUint8(length - SECONDS + 1, ZERO + seconds - tens * 10);
  words.setUint8(length - MILLISECONDS, ZERO + hundreds);
  words.setUint8(length - MILLISECONDS + 1, ZERO + hundredths - hundreds * 10);
  words.setUint8(length - MILLISECONDS + 2, ZERO + milliseconds - hundredths * 10);
}
