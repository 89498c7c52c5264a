import { sql } from 'kysely';
import { pieceOfTime } from '../json/iso-time.ts';
import { JsonPage, pieceOf } from '../json/json-writer.ts';
import type { ListRow } from '../postgres/index.ts';
import { type Field, fields } from './fields.ts';
import type { Position } from './list-cursor.ts';
import { members } from './user-reply.ts';

/** The columns of a user on a page, in binary. */
export const pageColumns = sql.join(fields.map(({ name }) => sql.ref(`users.${name}`)));

/** Size in bytes. Each field follows its length, which is -1 for null. */
const LENGTH_BYTES = 4;

/** The epoch of PostgreSQL's timestamps: 2000, in milliseconds since 1970. */
const EPOCH_MS = 946_684_800_000;

const [BEGIN, NEXT, END, END_OF_USER] = [pieceOf('['), pieceOf(','), pieceOf(']'), pieceOf('}')];
const [TRUE, FALSE] = [pieceOf('true'), pieceOf('false')];

const page = new JsonPage();

/** Writes a value, by the type of its column. */
const WRITE: Readonly<Record<Field['sqlType'], (bytes: Buffer, begin: number, length: number) => void>> = {
  uuid: (bytes, begin) => page.uuid(bytes, begin),
  text: (bytes, begin, length) => page.text(bytes, begin, length),
  boolean: (bytes, begin) => page.piece(bytes[begin] === 0 ? FALSE : TRUE),
  timestamptz: (bytes, begin) => page.piece(pieceOfTime(timestampIn(bytes, begin))),
};

const MEMBERS = members.map(({ sqlType, begin, ifNull }) => ({
  begin: pieceOf(begin),
  ifNull: pieceOf(ifNull),
  write: WRITE[sqlType],
}));

/**
 * The JSON of a page of users, identical to `JSON.stringify` of their representations. It is written from the bytes of
 * the rows, without objects for users and without strings for fields. For a list of 100 this takes the server a sixth
 * less. PostgreSQL, which formats no times and no numbers, takes a third less.
 */
export function usersJson(rows: readonly ListRow[]): string | Buffer {
  page.begin();
  page.piece(BEGIN);
  for (let at = 0; at < rows.length; at += 1) {
    if (at > 0) page.piece(NEXT);
    writeUser(rows[at] as ListRow);
  }
  page.piece(END);
  return page.take();
}

/** The position of a page that ends with this row. It is read from the user's JSON. */
export function positionOf(row: ListRow): Position {
  const [{ id, created_at }] = JSON.parse(String(usersJson([row])));
  return { created_at: Date.parse(created_at), id: id.replaceAll('-', '') };
}

function writeUser({ bytes, at }: ListRow): void {
  let begin = at;
  for (let index = 0; index < MEMBERS.length; index += 1) {
    const member = MEMBERS[index] as (typeof MEMBERS)[number];
    const length = bytes.readInt32BE(begin);
    begin += LENGTH_BYTES;
    if (length < 0) {
      page.piece(member.ifNull);
      continue;
    }
    page.piece(member.begin);
    member.write(bytes, begin, length);
    begin += length;
  }
  page.piece(END_OF_USER);
}

/**
 * Converts 64 bits of microseconds to milliseconds since 1970, the precision of the column. 2 ** 32 is 4,294,967
 * thousands and 296. A number holds each millisecond that Date can represent, but not each microsecond.
 */
function timestampIn(bytes: Buffer, at: number): number {
  const upper = bytes.readInt32BE(at);
  return upper * 4_294_967 + Math.round((upper * 296 + bytes.readUInt32BE(at + 4)) / 1000) + EPOCH_MS;
}
