import { type Kysely, sql } from 'kysely';
import { createIndexConcurrently } from './concurrent-index.ts';

/**
 * The order of the list, with inactive users only. They are few, and a page of them must not read the users between.
 */
export function inactiveUsers(db: Kysely<unknown>): Promise<void> {
  return createIndexConcurrently(db, {
    name: 'users_inactive_created_at_id_idx',
    on: sql`users (created_at, id) where not is_active`,
  });
}
