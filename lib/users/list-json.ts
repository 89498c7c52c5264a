import { sql } from 'kysely';
import { pieceOfTime } from '../json/iso-time.ts';
import { JsonPage, pieceOf } from '../json/json-writer.ts';
import { booleanAt, type ListRow, readFields, timestampAt } from '../postgres/index.ts';
import { type Field, fields } from './fields.ts';
import type { Position } from './list-cursor.ts';
import { members } from './user-reply.ts';

export const pageColumns = sql.join(fields.map(({ name }) => sql.ref(`users.${name}`)));

const [BEGIN, NEXT, END, END_OF_USER] = [pieceOf('['), pieceOf(','), pieceOf(']'), pieceOf('}')];
const [TRUE, FALSE] = [pieceOf('true'), pieceOf('false')];

const page = new JsonPage();

const WRITE: Readonly<Record<Field['sqlType'], (bytes: Buffer, begin: number, length: number) => void>> = {
  uuid: (bytes, begin) => page.uuid(bytes, begin),
  text: (bytes, begin, length) => page.text(bytes, begin, length),
  boolean: (bytes, begin) => page.piece(booleanAt(bytes, begin) ? TRUE : FALSE),
  timestamptz: (bytes, begin) => page.piece(pieceOfTime(timestampAt(bytes, begin))),
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

function writeUser(row: ListRow): void {
  readFields(row, MEMBERS.length, writeMember);
  page.piece(END_OF_USER);
}

function writeMember(index: number, bytes: Buffer, begin: number, length: number): void {
  const member = MEMBERS[index] as (typeof MEMBERS)[number];
  if (length < 0) page.piece(member.ifNull);
  else {
    page.piece(member.begin);
    member.write(bytes, begin, length);
  }
}
