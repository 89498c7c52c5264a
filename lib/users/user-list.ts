import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from '../database/schema.ts';
import { cursorAfter, type Position, positionIn } from './list-cursor.ts';
import { LARGEST_SKIP, type UserListQuery } from './list-query.ts';
import { momentOf } from './moment.ts';
import type { User } from './user.ts';
import { userColumns } from './user-columns.ts';

/** A page of the list, and the query of the next one; undefined at the end. */
export type UserPage = { readonly users: readonly User[]; readonly next: string | undefined };

/** Reads one page, and one user more, who tells whether there is another page. */
export async function readPage(db: Kysely<Tables>, query: UserListQuery): Promise<UserPage> {
  const found = await selectUsers(db, query).execute();
  const users = found.slice(0, query.limit);
  const last = users.at(-1);
  return { users, next: last && found.length > users.length ? nextQuery(query, last) : undefined };
}

/**
 * One statement, whose text depends on which parameters there are and never on their values. What it rests on:
 *
 * - without a filter, with `created_after`, `created_before` and with a cursor: `users_created_at_id_idx`, either way
 * - `is_active=false`: the same over inactive users alone, `users_inactive_created_at_id_idx`
 * - `is_active=true`: the first, passing over inactive users; most users are active, so an index of these saves nothing
 * - `email`: `users_email_key`, one row at most; `ids`: the primary key, 100 rows at most; all else is then a filter
 */
function selectUsers(db: Kysely<Tables>, query: UserListQuery) {
  const direction = isDescending(query) ? 'desc' : 'asc';
  return db
    .selectFrom('users')
    .select(userColumns)
    .where((where) => where.and(conditionsOf(query)))
    .orderBy('users.created_at', direction)
    .orderBy('id', direction)
    .limit(query.limit + 1)
    .offset(query.skip ?? 0);
}

function conditionsOf(query: UserListQuery): RawBuilder<boolean>[] {
  const { email, is_active, ids, created_after, created_before, cursor } = query;
  const after = created_after === undefined ? undefined : momentOf(created_after);
  const before = created_before === undefined ? undefined : momentOf(created_before);
  const position = cursor === undefined ? undefined : positionIn(cursor, query);
  return [
    email !== undefined && hasEmail(email),
    is_active === 'true' && sql<boolean>`is_active`,
    is_active === 'false' && sql<boolean>`not is_active`,
    ids !== undefined && sql<boolean>`id = any(${ids.split(',')}::uuid[])`,
    after && sql<boolean>`created_at > ${timestamp(after.floor)}`,
    before && sql<boolean>`created_at < ${timestamp(before.ceiling)}`,
    position && isBeyond(position, query),
  ].filter((condition) => typeof condition === 'object');
}

/** Folded under the collation of the column, whichever that is: it alone knows what is one address. */
function hasEmail(email: string) {
  return sql<boolean>`lower(upper(email)) = lower(upper(coalesce((select email from users where false), ${email})))`;
}

/** A comparison of rows, which the index answers as a whole. */
function isBeyond({ created_at, id }: Position, query: UserListQuery) {
  const beyond = isDescending(query) ? sql.raw('<') : sql.raw('>');
  return sql<boolean>`(created_at, id) ${beyond} (${timestamp(created_at)}, ${id}::uuid)`;
}

/** From milliseconds since 1970: a number means the same whatever DateStyle and TimeZone are. */
function timestamp(milliseconds: number) {
  return sql<Date>`to_timestamp(${milliseconds}::float8 / 1000)::timestamptz(3)`;
}

function isDescending({ sort }: UserListQuery): boolean {
  return sort === '-created_at';
}

/** A page by `skip` leads to a page by `skip`, as far as that can be said; any other to one by cursor. */
function nextQuery(query: UserListQuery, last: User): string {
  const { skip, limit, cursor: _, ...selection } = query;
  const position = { created_at: Number(last.created_at), id: last.id };
  const place =
    skip !== undefined && skip + limit <= LARGEST_SKIP
      ? { skip: skip + limit }
      : { cursor: cursorAfter(position, selection) };
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...selection, limit, ...place })) {
    if (value !== undefined) next.set(name, String(value));
  }
  return String(next);
}
