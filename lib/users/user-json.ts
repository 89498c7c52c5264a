import { isoTime } from '../json/iso-time.ts';
import { fields, isOmittedIfNull } from './fields.ts';
import type { User } from './user.ts';

/** The members of a user in JSON: what precedes a value, and what is written for null. */
export const JSON_MEMBERS = fields.map((field, index) => {
  const begin = `${index === 0 ? '{' : ','}${JSON.stringify(field.name)}:`;
  const { name, sqlType } = field;
  return { name, sqlType, begin, ifNull: isOmittedIfNull(field) ? '' : `${begin}null` };
});

/**
 * The JSON of a user, identical to `JSON.stringify` of its members. It is written without Date objects, which took 205
 * of the server's 525 microseconds for a page of 100 users.
 */
export function userJson(user: User): string {
  let json = '';
  // An index, because an iterator allocates memory for each member until V8 has optimized the loop.
  for (let index = 0; index < JSON_MEMBERS.length; index += 1) {
    const { name, sqlType, begin, ifNull } = JSON_MEMBERS[index] as (typeof JSON_MEMBERS)[number];
    const value = user[name];
    json += value === null ? ifNull : begin;
    if (value === null) continue;
    switch (sqlType) {
      case 'uuid':
        json += `"${value}"`;
        break;
      case 'text':
        json += JSON.stringify(value);
        break;
      case 'boolean':
        json += value;
        break;
      case 'timestamptz':
        json += `"${isoTime(value as number)}"`;
        break;
    }
  }
  return `${json}}`;
}
