import { sql } from 'kysely';
import { literalOfTimestamp, pieceOf } from '../json/json-literal.ts';
import { JsonPage } from '../json/json-writer.ts';
import type { ListRow } from '../postgres/index.ts';
import type { Position } from './list-cursor.ts';

/** The columns of a user on a page, in binary. */
export const pageColumns = sql.raw(
  'users.id, users.email, users.full_name, users.is_active, users.created_at, users.updated_at',
);

/** Sizes in bytes. Each field follows its length, which is -1 for null. */
const [LENGTH, UUID, BOOLEAN, TIMESTAMP] = [4, 16, 1, 8];

/** The epoch of PostgreSQL's timestamps: 2000, in milliseconds since 1970. */
const EPOCH = 946_684_800_000;

const [BEGIN, NEXT, END] = [pieceOf('['), pieceOf(','), pieceOf(']')];
const [ID, EMAIL, FULL_NAME, NULL] = [
  pieceOf('{"id":"'),
  pieceOf('","email":'),
  pieceOf(',"full_name":'),
  pieceOf('null'),
];
const ACTIVE = pieceOf(',"is_active":true,"created_at":"');
const INACTIVE = pieceOf(',"is_active":false,"created_at":"');
const [UPDATED_AT, END_OF_USER] = [pieceOf('","updated_at":"'), pieceOf('"}')];

const page = new JsonPage();

/**
 * The JSON of a page of users, identical to `JSON.stringify` of their representations. It is written from the bytes of
 * the rows, without objects for users and without strings for fields. For a list of 100 this takes the server a sixth
 * less. PostgreSQL, which formats no times and no numbers, takes a third less.
 */
export function usersJson(rows: readonly ListRow[]): string {
  page.begin();
  page.piece(BEGIN);
  for (let at = 0; at < rows.length; at += 1) {
    if (at > 0) page.piece(NEXT);
    writeUser(rows[at] as ListRow);
  }
  page.piece(END);
  return page.take();
}

/** The position of a page that ends with this row. */
export function positionOf({ bytes, at }: ListRow): Position {
  const id = at + LENGTH;
  const email = id + UUID;
  const isActive = afterText(bytes, afterText(bytes, email));
  const createdAt = isActive + LENGTH + BOOLEAN + LENGTH;
  return { created_at: timestampIn(bytes, createdAt), id: bytes.toString('hex', id, email) };
}

function writeUser({ bytes, at }: ListRow): void {
  const id = at + LENGTH;
  page.piece(ID);
  page.uuid(bytes, id);
  page.piece(EMAIL);
  const fullName = writeText(bytes, id + UUID);
  page.piece(FULL_NAME);
  const isActive = writeText(bytes, fullName) + LENGTH;
  page.piece(bytes[isActive] === 0 ? INACTIVE : ACTIVE);
  const createdAt = isActive + BOOLEAN + LENGTH;
  page.piece(literalOfTimestamp(timestampIn(bytes, createdAt)));
  page.piece(UPDATED_AT);
  page.piece(literalOfTimestamp(timestampIn(bytes, createdAt + TIMESTAMP + LENGTH)));
  page.piece(END_OF_USER);
}

/** Returns the position of the next field. */
function writeText(bytes: Buffer, at: number): number {
  const length = bytes.readInt32BE(at);
  if (length < 0) page.piece(NULL);
  else page.text(bytes, at + LENGTH, length);
  return afterText(bytes, at);
}

function afterText(bytes: Buffer, at: number): number {
  return at + LENGTH + Math.max(bytes.readInt32BE(at), 0);
}

/**
 * Converts 64 bits of microseconds to milliseconds since 1970, the precision of the column. 2 ** 32 is 4,294,967
 * thousands and 296. A number holds each millisecond that Date can represent, but not each microsecond.
 */
function timestampIn(bytes: Buffer, at: number): number {
  const upper = bytes.readInt32BE(at);
  return upper * 4_294_967 + Math.round((upper * 296 + bytes.readUInt32BE(at + 4)) / 1000) + EPOCH;
}
