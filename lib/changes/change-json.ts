import { isoTime } from '../json/iso-time.ts';
import { updatedFields } from '../users/fields.ts';
import { type ChangeRow, idOf, TYPES } from './change.ts';

/** The JSON of the names of changed fields, by the number in `changed`. */
const NAMES: string[] = [];

/**
 * The JSON of the change in a row, identical to `JSON.stringify` of that change. It is written in one piece. An object
 * and a Date per change took 115 of the server's 170 microseconds for a page of 100 changes.
 */
export function changeJson(row: ChangeRow): string {
  const { user_id, version, changed, actor, request_id, time } = row;
  const type = TYPES[row.type as keyof typeof TYPES];
  return `{"specversion":"1.0","id":"${idOf(row)}","source":"/api/v1/users","type":"${type}","subject":"${user_id}","time":"${isoTime(Number(time))}","datacontenttype":"application/json","data":{"version":${version},"changed":${namesIn(changed)},"actor":${JSON.stringify(actor)},"request_id":${JSON.stringify(request_id)}}}`;
}

/** Other bits belong to fields that a later version added. */
function namesIn(changed: number): string {
  NAMES[changed] ??= JSON.stringify(
    updatedFields.flatMap(({ name, changeBit }) => (changed & changeBit ? [name] : [])),
  );
  return NAMES[changed];
}
