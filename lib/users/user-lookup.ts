import { type RawBuilder, sql } from 'kysely';
import type { BatchedStatement, Statements } from '../postgres/index.ts';
import { foldedEmail } from './email.ts';
import { type UniqueName, uniqueNames } from './fields.ts';
import type { UserListQuery } from './list-query.ts';
import type { User } from './user.ts';
import { userColumns } from './user-statements.ts';

/** A value that at most one user has. */
type UniqueFilter = { readonly name: UniqueName; readonly value: string };

/** The filter of a query that has no other one; undefined if several users may match, or if it skips some. */
export function soleUniqueFilter(query: UserListQuery): UniqueFilter | undefined {
  const { skip, limit: _limit, sort: _sort, ...filters } = query;
  const [sole, ...others] = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, value }],
  );
  if (!sole || others.length > 0 || skip > 0) return undefined;
  const name = uniqueNames.find((unique) => unique === sole.name);
  return name && { name, value: sole.value };
}

/** Whether a query, as sent, has a unique filter and no other parameter. Only its admission depends on this. */
export function isLookup(query: string): boolean {
  const [name = '', ...others] = query.split(/[=&]/, 3);
  return others.length === 1 && uniqueNames.some((unique) => unique === name);
}

/**
 * Finds users by unique values. One statement carries out the lookups of several callers, so that a lookup takes two
 * thirds of the CPU time that it takes as a page of the list.
 */
export class UserLookup {
  readonly #selectBy: Record<UniqueName, BatchedStatement<{ readonly key: string }, User>>;

  constructor(statements: Statements) {
    this.#selectBy = {
      email: selectBy(statements, sql`lower(upper(users.email)) = ${foldedEmail(sql.ref('given.key'))}`),
      external_id: selectBy(statements, sql`users.external_id = given.key`),
    };
  }

  /** The user with this value. */
  find({ name, value }: UniqueFilter): Promise<User | undefined> {
    return this.#selectBy[name].run({ key: value });
  }
}

/** With `limit`, PostgreSQL looks up each value in the index. It would read the whole of a table that it takes for small. */
function selectBy(statements: Statements, isFound: RawBuilder<unknown>) {
  return statements.batchedRead<User>(
    'SELECT users',
    'text',
    (keys) => sql`select given.key, ${userColumns} from unnest(${keys}) as given (key)
      cross join lateral (select * from users where ${isFound} limit 1) as users`,
  );
}
