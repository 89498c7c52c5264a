import { momentText } from '../moment-text.ts';
import { type ChangeRow, fieldsIn, idOf, TYPES } from './change.ts';

/** The JSON of the names of changed fields, by the bits of these. */
const FIELDS = Array.from({ length: 8 }, (_, changed) => JSON.stringify(fieldsIn(changed)));

/** Bits beside these are of fields that a later version added. */
const KNOWN_BITS = FIELDS.length - 1;

/**
 * The JSON of the change in a row, to the byte as `JSON.stringify` writes that change. In one piece, and without an object
 * and a Date for each: of a page of 100 changes that took the server 115 of 170 microseconds.
 */
export function changeJson(row: ChangeRow): string {
  const { user_id, version, changed, actor, request_id, time } = row;
  const type = TYPES[row.type as keyof typeof TYPES];
  return `{"specversion":"1.0","id":"${idOf(row)}","source":"/api/v1/users","type":"${type}","subject":"${user_id}","time":"${momentText(Number(time))}","datacontenttype":"application/json","data":{"version":${version},"changed":${FIELDS[changed & KNOWN_BITS]},"actor":${JSON.stringify(actor)},"request_id":${JSON.stringify(request_id)}}}`;
}
