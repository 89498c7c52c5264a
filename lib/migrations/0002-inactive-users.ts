import { sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';
import { createIndexConcurrently } from '../postgres/index.ts';

/** The order of the list over inactive users alone, who are few: a page of them must not cost what lies between them. */
export function inactiveUsers(send: SendSql): Promise<void> {
  return createIndexConcurrently(send, {
    name: 'users_inactive_created_at_id_idx',
    on: sql`users (created_at, id) where not is_active`,
  });
}
