import { momentText } from '../moment-text.ts';
import type { User } from './user.ts';

/**
 * The JSON of a user, to the byte as `JSON.stringify` writes its representation. In one piece, and without a Date for
 * each moment: of a page of 100 users that took the server 205 of 525 microseconds.
 */
export function userJson({ id, email, full_name, is_active, created_at, updated_at }: User): string {
  const created = momentText(created_at);
  const updated = updated_at === created_at ? created : momentText(updated_at);
  const name = full_name === null ? 'null' : JSON.stringify(full_name);
  return `{"id":"${id}","email":${JSON.stringify(email)},"full_name":${name},"is_active":${is_active},"created_at":"${created}","updated_at":"${updated}"}`;
}
