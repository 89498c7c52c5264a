import createClient, { type Client } from 'openapi-fetch';
import { nextQuery, type Signal, succeeded, type Taken } from './answers.ts';
import { authorize } from './authorize.ts';
import type { TokenSource } from './client-credentials.ts';
import { type Feed, feedOf } from './feed.ts';
import { isObject, isProblem, refuseWrongAddress, WrongValue } from './problem.ts';
import { type RetryOptions, refuseWrongAttempts, sendAgain, wasSentAgain } from './retries.ts';
import type { components, paths } from './schema.ts';
import { acceptResponse, refuseWrongValues, unexpected } from './service-response.ts';
import { sleep } from './time-limit.ts';

/** A user, as in a response. */
export type User = components['schemas']['UserRead'];
/** A user and its version, for `ifVersion`. */
export type VersionedUser = User & { readonly version: string };
/** The members of a new user. */
export type NewUser = components['schemas']['UserCreate'];
/** The members to change. An absent member leaves its field unchanged. */
export type UserChange = components['schemas']['UserUpdate'];
/** Result of an item of a partial batch. */
export type BatchResult = components['schemas']['BatchItemResult'];
type ListQuery = NonNullable<paths['/api/v1/users/']['get']['parameters']['query']>;
/** The filters and the order of a list. `limit` is the size of a page. */
export type UserFilter = Omit<ListQuery, 'cursor' | 'skip'>;

/** The address of the service, and how to call it. */
export type UsersOptions = {
  /** The address of the service, with the path that it is mounted under. */
  readonly url: string;
  readonly token: TokenSource;
  readonly retry?: RetryOptions;
  readonly fetch?: typeof fetch;
};

/** The users of a service. A refusal is thrown as a `ProblemError`. */
export type Users = Feed & {
  /** Creates a user exactly once, also if responses are lost. `key` is your own Idempotency-Key. */
  create(user: NewUser, options?: Signal & { readonly key?: string }): Promise<VersionedUser>;
  /** Creates all users or none: up to 100. */
  createAll(users: readonly NewUser[], options?: Signal & { readonly key?: string }): Promise<User[]>;
  /** Creates the users that can be created, and returns one result per user. */
  createSome(users: readonly NewUser[], options?: Signal & { readonly key?: string }): Promise<BatchResult[]>;
  /** The user. */
  get(id: string, options?: Signal): Promise<VersionedUser>;
  /** The user, or undefined if there is none. */
  find(id: string, options?: Signal): Promise<VersionedUser | undefined>;
  /** The user with this email, whatever the case of A to Z, or undefined. */
  findByEmail(email: string, options?: Signal): Promise<User | undefined>;
  /** The user with this external id, or undefined. */
  findByExternalId(externalId: string, options?: Signal): Promise<User | undefined>;
  /** Changes the given fields. With `ifVersion` it fails if another caller has changed the user meanwhile. */
  change(
    id: string,
    change: UserChange,
    options?: Signal & { readonly ifVersion?: string },
  ): Promise<VersionedUser>;
  /**
   * Applies the result of `decide` for the current user, without losing another caller's change. If another caller was
   * first, the user is read and `decide` is called again. Undefined changes nothing.
   */
  update(
    id: string,
    decide: (user: VersionedUser) => UserChange | undefined | Promise<UserChange | undefined>,
    options?: Signal & { readonly attempts?: number },
  ): Promise<VersionedUser>;
  /** Deletes the user. With `ifVersion` it fails if another caller has changed the user meanwhile. */
  remove(id: string, options?: Signal & { readonly ifVersion?: string }): Promise<void>;
  /** All matching users, page by page. Each user that exists all the time occurs exactly once. */
  list(filter?: UserFilter, options?: Signal): AsyncGenerator<User, void>;
  /** Every operation of the OpenAPI document, with the same tokens and retries. */
  readonly api: Client<paths>;
};

const ALL = '/api/v1/users/';
const ONE = '/api/v1/users/{user_id}';
const BATCH = '/api/v1/users/batch';

/** In milliseconds, between two attempts of `update`. */
const LONGEST_PAUSE_MS = 1_000;

/**
 * The users of the service at `url`.
 *
 * @throws {TypeError} for options that cannot work
 */
export function createUsers({ url, token, retry = {}, fetch: given = fetch }: UsersOptions): Users {
  refuseWrongAddress('url', url);
  if (/[?#]/.test(url)) throw new WrongValue('url must not have a query or a fragment');
  if (typeof token !== 'function') throw new WrongValue('token must be a function that returns a token');
  if (typeof given !== 'function') throw new WrongValue('fetch must be a function');
  if (!isObject(retry)) throw new WrongValue('retry must be an object');
  const send = authorize((request) => given(request), token);
  const api = createClient<paths>({
    baseUrl: url.replace(/\/+$/, ''),
    fetch: sendAgain(send, retry),
    redirect: 'manual',
    querySerializer: { array: { style: 'form', explode: false } },
  });

  api.use({ onRequest: refuseWrongValues, onResponse: acceptResponse });

  async function get(id: string, options: Signal = {}): Promise<VersionedUser> {
    return versioned(await succeeded(api.GET(ONE, { params: about(id), ...options })), id);
  }

  async function createBatch(items: readonly NewUser[], mode: 'atomic' | 'partial', given: Keyed = {}) {
    const { key: _, ...options } = given;
    const body = { items: [...items], mode };
    for (const item of items) refuseLostValues(item);
    const { data, response } = await succeeded(api.POST(BATCH, { body, params: keyed(given), ...options }));
    if (response.status !== (mode === 'atomic' ? 201 : 200) || data.length !== items.length)
      throw unexpected(response, 'not one result per user');
    return data;
  }

  async function change(id: string, body: UserChange, given: Conditional = {}) {
    const { ifVersion: _, ...options } = given;
    refuseLostValues(body);
    const answer = await api.PATCH(ONE, { body, params: about(id, given), ...options });
    if (answer.response.status !== 412 || !wasSentAgain(answer.response))
      return versioned(await succeeded(answer), id);
    // A response was lost: this may be the version that the change itself made.
    const user = await get(id, options);
    return hasFields(user, body) ? user : versioned(await succeeded(answer), id);
  }

  /** A page of the list. A gateway that changes the query would return other users. */
  async function readPage(query: ListQuery, options: Signal): Promise<Taken<User[]>> {
    const page: Taken<User[]> = await succeeded(api.GET(ALL, { params: { query }, ...options }));
    const { ids, external_id, is_active, email } = query;
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
    if (data.length > (query.limit ?? 100)) throw unexpected(response, 'more users than were asked for');
    return page;
  }

  return {
    api,
    async create(body, given = {}) {
      const { key: _, ...options } = given;
      refuseLostValues(body);
      return versioned(await succeeded(api.POST(ALL, { body, params: keyed(given), ...options })));
    },
    createAll: async (items, options) => (await createBatch(items, 'atomic', options)) as User[],
    createSome: async (items, options) => (await createBatch(items, 'partial', options)) as BatchResult[],
    get,
    async find(id, options) {
      try {
        return await get(id, options);
      } catch (error) {
        if (isProblem(error, 'not_found_error')) return undefined;
        throw error;
      }
    },
    async findByEmail(email, options = {}) {
      const { data } = await readPage({ email }, options);
      return data.find((user) => isSameEmail(user.email, email));
    },
    async findByExternalId(external_id, options = {}) {
      return (await readPage({ external_id }, options)).data[0];
    },
    change,
    async update(id, decide, { attempts = 10, ...options } = {}) {
      refuseWrongAttempts(attempts);
      for (let attempt = 1; ; attempt += 1) {
        const user = await get(id, options);
        const wanted = await decide(user);
        if (wanted === undefined) return user;
        try {
          return await change(id, wanted, { ifVersion: user.version, ...options });
        } catch (error) {
          if (!isProblem(error, 'precondition_failed_error') || attempt === attempts) throw error;
          await sleep(Math.random() * Math.min(2 ** attempt, LONGEST_PAUSE_MS), options.signal);
        }
      }
    },
    async remove(id, given = {}) {
      const { ifVersion: _, ...options } = given;
      const answer = await api.DELETE(ONE, { params: about(id, given), ...options });
      // If the response to an earlier attempt was lost, that attempt may have deleted the user.
      if (answer.response.status === 404 && wasSentAgain(answer.response)) return;
      await succeeded(answer);
    },
    async *list(filter = {}, options = {}) {
      // A list, a Map or a Date has no filters, and would select all users.
      if (!isObject(filter)) throw new WrongValue('the filter must be an object');
      if (Array.isArray(filter.ids) && filter.ids.length === 0) return;
      const first = { limit: 100, ...filter };
      const { limit, sort = 'created_at' } = first;
      const isAfter = (user: User, other: User | undefined) =>
        other === undefined ||
        (keyOf(user) > keyOf(other) === (sort === 'created_at') && user.id !== other.id);
      let last: User | undefined;
      let isRepeated = false;
      for (let query: ListQuery = first; ; ) {
        const { data, response } = await readPage(query, options);
        for (const user of data) {
          if (isRepeated && !isAfter(user, last)) continue;
          if (!isAfter(user, last)) throw unexpected(response, 'users in another order, or a page again');
          yield user;
          last = user;
        }
        const next = nextQuery(response);
        if (next) {
          if (!next.cursor && !next.skip) throw unexpected(response, 'a link without a cursor');
          if (data.length === 0) throw unexpected(response, 'a page without users that is not the last one');
          query = next.cursor ? { ...first, cursor: next.cursor } : { ...first, skip: Number(next.skip) };
          isRepeated = false;
          continue;
        }
        // A page that is not full is the last one. A full one may be, or its link was lost.
        if (data.length < limit || data.length === filter.ids?.length) return;
        if (isRepeated) throw unexpected(response, 'a page without a link, although further users exist');
        const { skip: _, cursor: __, ...filters }: ListQuery = first;
        const reverse = sort === 'created_at' ? '-created_at' : 'created_at';
        const [end] = (await readPage({ ...filters, sort: reverse, limit: 1 }, options)).data;
        if (!end || !isAfter(end, last)) return;
        // That user may be new.
        isRepeated = true;
      }
    },
    ...feedOf(api),
  };
}

type Keyed = Signal & { readonly key?: string };
type Conditional = Signal & { readonly ifVersion?: string };

// An option that is given and undefined is refused: a random key, or no condition, would not be what the caller means.
const keyed = (given: Keyed) => ({
  header: { 'Idempotency-Key': 'key' in given ? given.key : randomKey() },
});

/** Browsers have `crypto.randomUUID` only in pages that came by HTTPS. */
const randomKey = () =>
  [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join('-');

const about = (id: string, given: Conditional = {}) => ({
  path: { user_id: id },
  ...('ifVersion' in given && { header: { 'If-Match': strongTag(given.ifVersion) } }),
});

/** A proxy that compresses responses makes an entity tag weak, or marks it. If-Match must refuse such a tag. */
function strongTag(tag: string | undefined): string {
  if (typeof tag !== 'string' || tag === '') throw new WrongValue('ifVersion must be the version of a user');
  return tag.replace(/^W\//, '').replace(/[-;](?:gzip|br|zstd|deflate)"$/, '"');
}

/** With the user's id, if the request has one. */
function versioned({ data, response }: Taken<User>, id = data.id): VersionedUser {
  const tag = response.headers.get('etag');
  if (!tag) throw unexpected(response, 'a user without an ETag');
  if (data.id !== id.toLowerCase()) throw unexpected(response, 'another user');
  return { ...data, version: strongTag(tag) };
}

/** Letters other than A to Z have no case, as in the service. */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Whether two emails are the same address. */
export function isSameEmail(one: string, other: string): boolean {
  return foldEmail(one) === foldEmail(other);
}

/** The position of a user in the list. */
const keyOf = ({ created_at, id }: User) => created_at + id;

/** JSON writes these values as null, or leaves them out, which would clear a field or leave it. */
function refuseLostValues(body: object): void {
  for (const [name, value] of Object.entries(body ?? {}))
    if (
      ['function', 'symbol'].includes(typeof value) ||
      (typeof value === 'number' && !Number.isFinite(value))
    )
      throw new WrongValue(`${name} must be a value of JSON`);
}

/** Fields that an update leaves unchanged if they are null. Null clears every other field. */
const LEFT_BY_NULL = ['email', 'is_active'];
/** Members of a user that an update ignores. They are in a change that is a copy of the user with other values. */
const IGNORED = ['id', 'created_at', 'updated_at', 'version'];

/** Whether the user has the values of the change. A field that this file does not name counts, too. */
function hasFields(user: User, change: UserChange): boolean {
  const values: Readonly<Record<string, unknown>> = user;
  return Object.entries(change).every(
    ([name, value]) =>
      value === undefined ||
      IGNORED.includes(name) ||
      (value === null && LEFT_BY_NULL.includes(name)) ||
      value === (values[name] ?? null),
  );
}
