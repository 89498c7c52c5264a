import { isoTime } from '../json/iso-time.ts';
import { type ChangeRow, fieldsIn, idOf, TYPES } from './change.ts';

/** The JSON of the names of changed fields, by their bits. */
const FIELDS = Array.from({ length: 8 }, (_, changed) => JSON.stringify(fieldsIn(changed)));

/** Other bits belong to fields that a later version added. */
const KNOWN_BITS = FIELDS.length - 1;

/**
 * The JSON of the change in a row, identical to `JSON.stringify` of that change. It is written in one piece. An object
 * and a Date per change took 115 of the server's 170 microseconds for a page of 100 changes.
 */
export function changeJson(row: ChangeRow): string {
  const { user_id, version, changed, actor, request_id, time } = row;
  const type = TYPES[row.type as keyof typeof TYPES];
  return `{"specversion":"1.0","id":"${idOf(row)}","source":"/api/v1/users","type":"${type}","subject":"${user_id}","time":"${isoTime(Number(time))}","datacontenttype":"application/json","data":{"version":${version},"changed":${FIELDS[changed & KNOWN_BITS]},"actor":${JSON.stringify(actor)},"request_id":${JSON.stringify(request_id)}}}`;
}
