import { sql } from 'kysely';
import type { User } from './user.ts';

/** A user as PostgreSQL returns it: numbers of type bigint arrive as texts. */
export type UserRow = Omit<User, 'created_at' | 'updated_at'> & {
  readonly created_at: string;
  readonly updated_at: string;
};

/**
 * The columns of a user. Times are in milliseconds since 1970: the text of a timestamp depends on DateStyle and
 * TimeZone, which roles, databases and poolers set, and a number does not. `date_part` returns a float8, which holds
 * the milliseconds of ten thousand years and costs half of the exact `extract`.
 */
export const userColumns = sql.raw(`users.id, users.email, users.full_name, users.is_active,
    (date_part('epoch', users.created_at) * 1000)::bigint as created_at,
    (date_part('epoch', users.updated_at) * 1000)::bigint as updated_at, users.version`);

/** The user in a row. Other columns are ignored. */
export function userIn({ id, email, full_name, is_active, created_at, updated_at, version }: UserRow): User {
  return {
    id,
    email,
    full_name,
    is_active,
    created_at: Number(created_at),
    updated_at: Number(updated_at),
    version,
  };
}
