import { type RawBuilder, sql } from 'kysely';
import { queryWith } from '../http/next-link.ts';
import { eachGiven, type ListRow, type PreparedStatement, type Statements } from '../postgres/index.ts';
import { timestampRange } from './date-time.ts';
import { type UniqueName, uniqueNames } from './fields.ts';
import { cursorAfter, type Position, parseCursor } from './list-cursor.ts';
import { pageColumns, positionOf, usersJson } from './list-json.ts';
import { MAX_SHORT_PAGE, MAX_SKIP, type UserListQuery } from './list-query.ts';
import { hasValue } from './taken-values.ts';
import { USERS_PATH, type User } from './user.ts';
import { type UserPage, userJson } from './user-reply.ts';
import { userColumns } from './user-statements.ts';

/** The parameters of the statement for a query. Times are in milliseconds since 1970. */
type PageParameters = ReturnType<typeof valuesOf>;

/** What decides about the statement of a query: order, filter, and the names of the parameters that have a value. */
type StatementShape = Pick<UserListQuery, 'sort' | 'is_active'> & { readonly given: ReadonlySet<string> };

/** Maximum `skip` of a short statement. Skipping so many users takes PostgreSQL less than a millisecond. */
const MAX_SHORT_SKIP = 2000;

/** The unique filter of a query whose parameters have these names, if there is no other one. At most one user matches. */
function findSoleFilter([name, ...others]: readonly string[]): UniqueName | undefined {
  return others.length === 0 ? uniqueNames.find((unique) => unique === name) : undefined;
}

export class UserList {
  readonly #statements: Statements;
  readonly #lookups: Readonly<Record<UniqueName, ReturnType<typeof lookupBy>>>;
  readonly #prepared = new Map<string, PreparedStatement<PageParameters, ListRow>>();

  constructor(statements: Statements) {
    this.#statements = statements;
    this.#lookups = {
      email: lookupBy(statements, hasValue.email(sql.ref('given.key'))),
      external_id: lookupBy(statements, hasValue.external_id(sql.ref('given.key'))),
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

  #prepare(query: UserListQuery, values: PageParameters): PreparedStatement<PageParameters, ListRow> {
    const { limit, skip, sort, is_active } = query;
    // PostgreSQL reads all rows that `skip` passes over, and all rows between two active users.
    const isLong = limit > MAX_SHORT_PAGE || skip > MAX_SHORT_SKIP || is_active === 'true';
    const kind = isLong ? 'own-session' : 'list';
    const given = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    const key = [kind, sort, is_active, ...given].join(' ');
    const known = this.#prepared.get(key);
    if (known) return known;
    const shape = { sort, is_active, given: new Set(given) };
    const prepared = this.#statements.list('SELECT users', kind, (parameters: PageParameters) =>
      selectUsers(shape, parameters),
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
  const isAscending = query.sort === 'created_at';
  const isAfterPassed = isAscending && Number(position?.created_at) > Number(after);
  const isBeforePassed = !isAscending && Number(position?.created_at) < Number(before);
  return {
    email,
    external_id,
    ids: ids?.split(','),
    after: isAfterPassed ? undefined : after,
    before: isBeforePassed ? undefined : before,
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
function selectUsers(
  { sort, is_active, given }: StatementShape,
  values: PageParameters,
): RawBuilder<unknown> {
  const [direction, beyond] = sort === 'created_at' ? [sql`asc`, sql`>`] : [sql`desc`, sql`<`];
  const conditions = [
    sql`true`,
    given.has('email') && hasValue.email(sql`${values.email}::text`),
    given.has('external_id') && hasValue.external_id(sql`${values.external_id}::text`),
    is_active !== undefined && (is_active === 'true' ? sql`users.is_active` : sql`not users.is_active`),
    given.has('ids') && sql`users.id = any(${values.ids}::uuid[])`,
    given.has('after') && sql`users.created_at > ${timestamp(values.after)}`,
    given.has('before') && sql`users.created_at < ${timestamp(values.before)}`,
    // A comparison of rows uses both columns of the index.
    given.has('last_id') &&
      sql`(users.created_at, users.id) ${beyond} (${timestamp(values.last_created_at)}, ${values.last_id}::uuid)`,
  ].filter((condition) => condition !== false);
  // The addition prevents the use of the index of this order. For few of 100 ids, PostgreSQL would walk the whole list.
  const time = given.has('ids') ? sql`users.created_at + interval '0'` : sql`users.created_at`;
  return sql`select ${pageColumns} from users where ${sql.join(conditions, sql` and `)}
    order by ${time} ${direction}, users.id ${direction} limit ${values.limit} offset ${values.skip}`;
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
