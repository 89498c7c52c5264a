import type { UserBody } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';

/** The users of a list, as in its response, after a statement that stores them. */
export async function storedUsers(
  database: Parameters<typeof inDatabase>[0],
  statement: string,
): Promise<readonly UserBody[]> {
  const list =
    'SELECT id, email, full_name, is_active, created_at, updated_at FROM users ORDER BY created_at, id';
  return JSON.parse(JSON.stringify(await inDatabase(database, statement, list)));
}
