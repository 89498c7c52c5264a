import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';
import { createIndexConcurrently } from './concurrent-index.ts';

/** The order of the list for inactive users only. They are few, and a page of them must not read the active ones. */
export function inactiveUsers(send: SendSql): Promise<void> {
  return createIndexConcurrently(send, {
    name: 'users_inactive_created_at_id_idx',
    table: 'users',
    on: sql`(created_at, id) where not is_active`,
  });
}
