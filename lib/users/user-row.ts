import { sql } from 'kysely';
import type { User } from './user.ts';

/** A user as PostgreSQL answers it: numbers of type bigint arrive as texts. */
export type UserRow = Omit<User, 'created_at' | 'updated_at'> & {
  readonly created_at: string;
  readonly updated_at: string;
};

/**
 * The columns of a user. Moments are in milliseconds since 1970: the text of a timestamp depends on DateStyle and
 * TimeZone, which roles, databases and poolers set, and a number does not.
 */
export const userColumns = sql.raw(`users.id, users.email, users.full_name, users.is_active,
    (extract(epoch from users.created_at) * 1000)::bigint as created_at,
    (extract(epoch from users.updated_at) * 1000)::bigint as updated_at, users.version`);

/** The user in a row. */
export function userIn(row: UserRow): User {
  return { ...row, created_at: Number(row.created_at), updated_at: Number(row.updated_at) };
}
