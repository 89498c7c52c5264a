import { type RawBuilder, sql } from 'kysely';
import { queryWith } from '../http/query-parameters.ts';
import { eachGiven, type ListRow, type PreparedStatement, type Statements } from '../postgres/index.ts';
import { timestampRange } from './date-time.ts';
import { foldedEmail } from './email.ts';
import { type UniqueName, uniqueNames } from './fields.ts';
import { cursorAfter, type Position, parseCursor } from './list-cursor.ts';
import { pageColumns, positionOf, usersJson } from './list-json.ts';
import { MAX_SHORT_PAGE, MAX_SKIP, type UserListQuery } from './list-query.ts';
import { USERS_PATH, type User } from './user.ts';
import { type UserPage, userJson } from './user-reply.ts';
import { userColumns } from './user-statements.ts';

/** The parameters of the statement for a query. Times are in milliseconds since 1970. */
type PageParameters = ReturnType<typeof valuesOf>;

/** Maximum `skip` of a short statement. Skipping so many users takes PostgreSQL less than a millisecond. */
const MAX_SHORT_SKIP = 2000;

/** The unique filter of a query whose parameters have these names, if there is no other one. At most one user matches. */
function findSoleFilter([name, ...others]: readonly string[]): UniqueName | undefined {
  return others.length === 0 ? uniqueNames.find((unique) => unique === name) : undefined;
}

/** The list of users. */
export class UserList {
  readonly #statements: Statements;
  readonly #lookups: Readonly<Record<UniqueName, ReturnType<typeof lookupBy>>>;
  readonly #prepared = new Map<string, PreparedStatement<PageParameters, ListRow>>();

  constructor(statements: Statements) {
    this.#statements = statements;
    this.#lookups = {
      email: lookupBy(
        statements,
        sql`${foldedEmail(sql.ref('users.email'))} = ${foldedEmail(sql.ref('given.key'))}`,
      ),
      external_id: lookupBy(statements, sql`users.external_id collate "C" = given.key`),
    };
  }

  /** Reads a page and one further user, whose presence shows that there is a next page. */
  async read(query: UserListQuery): Promise<UserPage> {
    const { skip, limit: _limit, sort: _sort, ...filters } = query;
    const unique = skip === 0 && findSoleFilter(Object.keys(filters));
    if (unique) {
      const user = await this.#lookups[unique].run({ key: query[unique] as string });
      return { json: user ? `[${userJson(user)}]` : '[]', next: undefined };
    }
    const values = valuesOf(query);
    const found = await this.#prepare(query, values).run(values);
    if (found.length <= query.limit) return { json: usersJson(found), next: undefined };
    const rows = found.slice(0, query.limit);
    return { json: usersJson(rows), next: nextPath(query, positionOf(rows.at(-1) as ListRow)) };
  }

  /** The statement for the order, the filter `is_active`, and the names of the present values. */
  #prepare(query: UserListQuery, values: PageParameters): PreparedStatement<PageParameters, ListRow> {
    const { limit, skip, is_active } = query;
    // PostgreSQL reads all rows that `skip` passes over, and all rows between two active users.
    const isLong = limit > MAX_SHORT_PAGE || skip > MAX_SHORT_SKIP || is_active === 'true';
    const kind = isLong ? 'single' : 'list';
    const names = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    const words = [query.sort, is_active, ...names];
    const key = [kind, ...words].join(' ');
    const known = this.#prepared.get(key);
    if (known) return known;
    const prepared = this.#statements.list('SELECT users', kind, (given: PageParameters) =>
      selectUsers(new Set(words), given),
    );
    this.#prepared.set(key, prepared);
    return prepared;
  }
}

/**
 * Finds users by a unique value. One statement carries out the lookups of several callers, so that a lookup takes two
 * thirds of the CPU time that it takes as a page of the list. With `limit`, PostgreSQL looks up each value in the index.
 * It would read the whole of a table that it takes for small.
 */
function lookupBy(statements: Statements, isFound: RawBuilder<unknown>) {
  return statements.batchedRead<User>(
    'SELECT users',
    'text',
    (keys) => sql`with given as materialized (select * from unnest(${keys}) as given (key))
      select given.key, ${userColumns} from ${eachGiven}
      cross join lateral (select * from users where ${isFound} limit 1) as users`,
  );
}

/** Omits a bound that the cursor has passed, because PostgreSQL would start at the bound and walk to the cursor. */
function valuesOf(query: UserListQuery) {
  const { email, external_id, ids, created_after = '', created_before = '', cursor, skip, limit } = query;
  const position = cursor === undefined ? undefined : parseCursor(cursor, query);
  const after = timestampRange(created_after)?.floor;
  const before = timestampRange(created_before)?.ceiling;
  const way = query.sort === 'created_at' ? 1 : -1;
  const hasPassed = (bound = NaN) => position !== undefined && (position.created_at - bound) * way > 0;
  return {
    email,
    external_id,
    ids: ids?.split(','),
    after: way === 1 && hasPassed(after) ? undefined : after,
    before: way === -1 && hasPassed(before) ? undefined : before,
    last_created_at: position?.created_at,
    last_id: position?.id,
    skip,
    limit: limit + 1,
  };
}

/**
 * One statement. It uses these indexes:
 *
 * - without a filter, with `created_after`, `created_before` and with a cursor: `users_created_at_id_idx`, in either
 *   direction
 * - `is_active=false`: `users_inactive_created_at_id_idx`, which contains only inactive users
 * - `is_active=true`: `users_created_at_id_idx`. It passes over inactive users. Most users are active, so an index of
 *   active users would save nothing
 * - `email`: `users_email_key`, `external_id`: `users_external_id_key`, at most one row. `ids`: the primary key, at most
 *   100 rows. Other filters apply to these rows
 */
function selectUsers(words: ReadonlySet<string | undefined>, given: PageParameters): RawBuilder<unknown> {
  const [direction, beyond] = words.has('-created_at') ? [sql`desc`, sql`<`] : [sql`asc`, sql`>`];
  const conditions = [
    sql`true`,
    words.has('email') &&
      sql`${foldedEmail(sql.ref('users.email'))} = ${foldedEmail(sql`${given.email}::text`)}`,
    words.has('external_id') && sql`users.external_id collate "C" = ${given.external_id}::text`,
    words.has('true') && sql`users.is_active`,
    words.has('false') && sql`not users.is_active`,
    words.has('ids') && sql`users.id = any(${given.ids}::uuid[])`,
    words.has('after') && sql`users.created_at > ${timestamp(given.after)}`,
    words.has('before') && sql`users.created_at < ${timestamp(given.before)}`,
    // A comparison of rows uses both columns of the index.
    words.has('last_id') &&
      sql`(users.created_at, users.id) ${beyond} (${timestamp(given.last_created_at)}, ${given.last_id}::uuid)`,
  ].filter((condition) => condition !== false);
  // The addition prevents the use of the index of this order. For few of 100 ids, PostgreSQL would walk the whole list.
  const moment = words.has('ids') ? sql`users.created_at + interval '0'` : sql`users.created_at`;
  return sql`select ${pageColumns} from users where ${sql.join(conditions, sql` and `)}
    order by ${moment} ${direction}, users.id ${direction} limit ${given.limit} offset ${given.skip}`;
}

/**
 * A time from milliseconds since 1970. Unlike a text, a number does not depend on DateStyle and TimeZone. Citus sends it to
 * a worker as a text, so the digits of a float would depend on `extra_float_digits`.
 */
function timestamp(milliseconds: number | undefined): RawBuilder<unknown> {
  return sql`(timestamptz 'epoch' + ${milliseconds}::bigint * interval '1 millisecond')::timestamptz(3)`;
}

/** The next link has `skip` if the request has a `skip` above 0 and the sum is allowed. Otherwise it has a cursor. */
function nextPath(query: UserListQuery, last: Position): string {
  const { skip, limit, cursor: _, ...selection } = query;
  const place =
    skip > 0 && skip + limit <= MAX_SKIP ? { skip: skip + limit } : { cursor: cursorAfter(last, selection) };
  return `${USERS_PATH}/?${queryWith({ ...selection, limit, ...place })}`;
}
