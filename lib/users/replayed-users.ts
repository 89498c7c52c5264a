import { sql } from 'kysely';
import type { Known } from '../idempotency/carry-out-once.ts';
import { keptSince } from '../idempotency/claim.ts';
import type { Statements } from '../postgres/index.ts';
import type { TakenResult } from './batch/batch-conflicts.ts';
import type { User } from './user.ts';
import { type UserRow, userColumns, userIn } from './user-row.ts';

/**
 * The current state of an item of a request with a key: its user, `gone` if it has since been deleted, or `refused` if
 * it was never stored. Only the first response knows which values were taken.
 */
export type ReplayedUser = User | 'gone' | 'refused' | TakenResult;

type Row = (UserRow | { readonly id: null }) & { readonly request: Buffer; readonly created: string | null };

/** Reads the record of a key: one entry per item of its request, in their order. */
export function readingReplayedUsers(statements: Statements) {
  const select = statements.single<{ key: Buffer }, Row>(
    'SELECT idempotency_keys',
    ({ key }) => sql`
      select held.request, item.created, ${userColumns}
      from idempotency_keys as held
      cross join lateral unnest(held.user_ids) with ordinality as item (created, position)
      left join users on users.id = item.created
      where held.key = ${key} and held.created_at > ${keptSince}
      order by item.position`,
  );

  return async (key: Buffer): Promise<Known<readonly ReplayedUser[]> | undefined> => {
    const rows = await select({ key });
    return rows[0] && { request: rows[0].request, created: rows.map(knownUserIn) };
  };
}

function knownUserIn({ request: _, created, ...row }: Row): ReplayedUser {
  if (created === null) return 'refused';
  return row.id === null ? 'gone' : userIn(row);
}
