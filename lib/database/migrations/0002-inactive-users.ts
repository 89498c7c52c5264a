import { type Kysely, sql } from 'kysely';
import { createIndexConcurrently } from './concurrent-index.ts';

/** The order of the list over inactive users alone, who are few: a page of them must not cost what lies between them. */
export function inactiveUsers(db: Kysely<unknown>): Promise<void> {
  return createIndexConcurrently(db, {
    name: 'users_inactive_created_at_id_idx',
    on: sql`users (created_at, id) where not is_active`,
  });
}
