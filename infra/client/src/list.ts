import type { Client } from 'openapi-fetch';
import { DEFAULT_LIST_LIMIT } from './checks.ts';
import { nextQuery } from './link.ts';
import type { User } from './operations.ts';
import { isObject, WrongValue } from './problem.ts';
import type { paths } from './schema.ts';
import { type Signal, succeeded, type Taken, unexpected } from './service-response.ts';

const LIST = '/api/v1/users/';
type ListQuery = NonNullable<paths[typeof LIST]['get']['parameters']['query']>;
/** The filters and the order of a list. `limit` is the size of a page. */
export type UserFilter = Omit<ListQuery, 'cursor' | 'skip'>;

/** The functions that read the list. */
export type List = ReturnType<typeof listOf>;

export function listOf(api: Client<paths>) {
  /** A page of the list. A gateway that changes the query would return other users. */
  async function readPage(query: ListQuery, options: Signal = {}): Promise<Taken<User[]>> {
    const page: Taken<User[]> = await succeeded(api.GET(LIST, { params: { query }, ...options }));
    const { ids, external_id, is_active, email, limit = DEFAULT_LIST_LIMIT } = query;
    const asked = ids && new Set(ids.map((id) => id.toLowerCase()));
    const isMatch = (user: User) =>
      (!asked || asked.has(user.id)) &&
      (external_id === undefined || user.external_id === external_id) &&
      (is_active === undefined || user.is_active === is_active);
    const { data, response } = page;
    if (!data.every(isMatch)) throw unexpected(response, 'users that do not match the filters');
    // An instance of 1.1.0 may return a second user, whose email differs in the case of another letter than A to Z.
    if (email !== undefined && data.length > 0 && !data.some((user) => isSameEmail(user.email, email)))
      throw unexpected(response, 'users with another email');
    if (data.length > limit) throw unexpected(response, 'more users than were asked for');
    return page;
  }

  /** Whether the service has a user after the last one of a full page. */
  async function hasUserAfter(last: User, query: ListQuery, options: Signal) {
    const { skip: _, cursor: __, ...filters } = query;
    const sort = query.sort === '-created_at' ? 'created_at' : '-created_at';
    const [end] = (await readPage({ ...filters, sort, limit: 1 }, options)).data;
    return end !== undefined && isAfter(last, end, query);
  }

  return {
    /** The user with this email, whatever the case of A to Z, or undefined. */
    async findByEmail(email: string, options?: Signal): Promise<User | undefined> {
      const { data } = await readPage({ email }, options);
      return data.find((user) => isSameEmail(user.email, email));
    },
    /** The user with this external id, or undefined. */
    findByExternalId: async (external_id: string, options?: Signal): Promise<User | undefined> =>
      (await readPage({ external_id }, options)).data[0],
    /** All matching users, page by page. Each user that exists all the time occurs exactly once. */
    async *list(filter: UserFilter = {}, options: Signal = {}): AsyncGenerator<User, void> {
      // A list, a Map or a Date has no filters, and would select all users.
      if (!isObject(filter)) throw new WrongValue('the filter must be an object');
      if (Array.isArray(filter.ids) && filter.ids.length === 0) return;
      const first: ListQuery & { limit: number } = { limit: DEFAULT_LIST_LIMIT, ...filter };
      let last: User | undefined;
      for (let query: ListQuery = first; ; ) {
        let { data, response } = await readPage(query, options);
        // A page that is not full is the last one. A full one may be, or its link was lost.
        const hasLostLink = () =>
          data.length >= first.limit && data.length !== filter.ids?.length && !nextQuery(response);
        const end = data.at(-1);
        if (hasLostLink() && end && (await hasUserAfter(end, first, options))) {
          // That user may be new.
          ({ data, response } = await readPage(query, options));
          if (hasLostLink())
            throw unexpected(response, 'a page without a link, although further users exist');
        }
        for (const user of data) {
          if (last && !isAfter(last, user, first))
            throw unexpected(response, 'users in another order, or a page again');
          yield user;
          last = user;
        }
        const next = nextQuery(response);
        if (!next) return;
        if (!next.cursor && !next.skip) throw unexpected(response, 'a link without a cursor');
        if (data.length === 0) throw unexpected(response, 'a page without users that is not the last one');
        query = { ...first, ...(next.cursor ? { cursor: next.cursor } : { skip: Number(next.skip) }) };
      }
    },
  };
}

/** Letters other than A to Z have no case, as in the service. */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Whether two emails are the same address. */
export function isSameEmail(one: string, other: string): boolean {
  return foldEmail(one) === foldEmail(other);
}

/** Whether a user comes after another one in the list. */
function isAfter(one: User, other: User, { sort }: ListQuery): boolean {
  const keyOf = ({ created_at, id }: User) => created_at + id;
  return one.id !== other.id && keyOf(other) > keyOf(one) === (sort !== '-created_at');
}
