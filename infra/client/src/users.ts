import createClient, { type Client } from 'openapi-fetch';
import { nextQuery, type Signal, succeeded, type Taken } from './answers.ts';
import { authorize } from './authorize.ts';
import type { TokenSource } from './client-credentials.ts';
import { type FeedOptions, feedOf } from './feed.ts';
import { isProblem } from './problem.ts';
import { type RetryOptions, sendAgain, wasSentAgain } from './retries.ts';
import type { components, paths } from './schema.ts';

/** A user, as the service answers it. */
export type User = components['schemas']['UserRead'];
/** A user and its version, which `ifVersion` takes. */
export type VersionedUser = User & { readonly version: string };
/** What a user is created from. */
export type NewUser = components['schemas']['UserCreate'];
/** What is to be changed: an absent member leaves its field unchanged. */
export type UserChange = components['schemas']['UserUpdate'];
/** Result of one item of a partial batch. */
export type BatchResult = components['schemas']['BatchItemResult'];
/** A change of a user, a CloudEvent. */
export type Change = components['schemas']['Change'];
/** Changes, and the cursor after them. */
export type ChangePage = { readonly changes: readonly Change[]; readonly cursor: string };

type ListQuery = NonNullable<paths['/api/v1/users/']['get']['parameters']['query']>;
/** The filters and the order of a list; `limit` is the size of a page. */
export type UserFilter = Omit<ListQuery, 'cursor' | 'skip'>;

/** Where the service is, and how to call it. */
export type UsersOptions = {
  /** The address of the service, with the path that it is mounted under. */
  readonly url: string;
  readonly token: TokenSource;
  readonly retry?: RetryOptions;
  readonly fetch?: typeof fetch;
};

/** The users of a service. Whatever it refuses is thrown as a `ProblemError`. */
export type Users = {
  /** Creates a user; whatever is lost on the way, once. `key` is an Idempotency-Key of one's own. */
  create(user: NewUser, options?: Signal & { readonly key?: string }): Promise<VersionedUser>;
  /** Creates all of them, or none: up to 100. */
  createAll(users: readonly NewUser[], options?: Signal & { readonly key?: string }): Promise<User[]>;
  /** Creates those that can be created, and returns the result of each. */
  createSome(users: readonly NewUser[], options?: Signal & { readonly key?: string }): Promise<BatchResult[]>;
  /** The user. */
  get(id: string, options?: Signal): Promise<VersionedUser>;
  /** The user, or undefined when there is none. */
  find(id: string, options?: Signal): Promise<VersionedUser | undefined>;
  /** The user with this email, in any case, or undefined. */
  findByEmail(email: string, options?: Signal): Promise<User | undefined>;
  /** Changes the fields that are given. `ifVersion` makes it fail when somebody else has changed the user since. */
  change(
    id: string,
    change: UserChange,
    options?: Signal & { readonly ifVersion?: string },
  ): Promise<VersionedUser>;
  /**
   * Changes what `decide` makes of the user as it is, so that nobody's change is lost: when somebody else was first, the
   * user is read and `decide` called again. Undefined changes nothing.
   */
  update(
    id: string,
    decide: (user: VersionedUser) => UserChange | undefined | Promise<UserChange | undefined>,
    options?: Signal & { readonly attempts?: number },
  ): Promise<VersionedUser>;
  /** Deletes the user. `ifVersion` makes it fail when somebody else has changed the user since. */
  remove(id: string, options?: Signal & { readonly ifVersion?: string }): Promise<void>;
  /** All users that fit, page by page; whoever is there all the time is seen exactly once. */
  list(filter?: UserFilter, options?: Signal): AsyncGenerator<User, void>;
  /** The changes of all users, oldest first. */
  changes(options?: FeedOptions): AsyncGenerator<Change, void>;
  /** The same in pages, each with the cursor to go on from; also an empty one, where there is no news. */
  changePages(options?: FeedOptions): AsyncGenerator<ChangePage, void>;
  /** The changes of one user, also after its deletion. */
  changesOf(id: string, options?: Signal): AsyncGenerator<Change, void>;
  /** The cursor of the last change that there is: what is read from it came later. */
  head(options?: Signal): Promise<string>;
  /** Every operation as the OpenAPI document has it, with the same tokens and retries. */
  readonly api: Client<paths>;
};

const ALL = '/api/v1/users/';
const ONE = '/api/v1/users/{user_id}';
const BATCH = '/api/v1/users/batch';

/** The users of the service at `url`. */
export function createUsers({ url, token, retry, fetch: given = fetch }: UsersOptions): Users {
  const send = authorize((request) => given(request), token);
  const api = createClient<paths>({
    baseUrl: url.replace(/\/+$/, ''),
    fetch: sendAgain(send, retry),
    querySerializer: { array: { style: 'form', explode: false } },
  });

  async function get(id: string, options: Signal = {}): Promise<VersionedUser> {
    return versioned(await succeeded(api.GET(ONE, { params: about(id), ...options })));
  }

  async function createBatch(
    items: readonly NewUser[],
    mode: 'atomic' | 'partial',
    { key, ...options }: Keyed = {},
  ) {
    const body = { items: [...items], mode };
    return (await succeeded(api.POST(BATCH, { body, params: keyed(key), ...options }))).data;
  }

  async function change(id: string, body: UserChange, { ifVersion, ...options }: Conditional = {}) {
    const answer = await api.PATCH(ONE, { body, params: about(id, ifVersion), ...options });
    if (answer.response.status !== 412 || !wasSentAgain(answer.response))
      return versioned(await succeeded(answer));
    // An answer was lost on the way: perhaps this is the version that the change itself has made.
    const user = await get(id, options);
    return hasFields(user, body) ? user : versioned(await succeeded(answer));
  }

  return {
    api,
    async create(body, { key, ...options } = {}) {
      return versioned(await succeeded(api.POST(ALL, { body, params: keyed(key), ...options })));
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
      const { data } = await succeeded(api.GET(ALL, { params: { query: { email } }, ...options }));
      return data[0];
    },
    change,
    async update(id, decide, { attempts = 10, ...options } = {}) {
      for (let attempt = 1; ; attempt += 1) {
        const user = await get(id, options);
        const wanted = await decide(user);
        if (wanted === undefined) return user;
        try {
          return await change(id, wanted, { ifVersion: user.version, ...options });
        } catch (error) {
          if (!isProblem(error, 'precondition_failed_error') || attempt === attempts) throw error;
        }
      }
    },
    async remove(id, { ifVersion, ...options } = {}) {
      const answer = await api.DELETE(ONE, { params: about(id, ifVersion), ...options });
      // Where the answer to an earlier attempt was lost, that one may have deleted it.
      if (answer.response.status === 404 && wasSentAgain(answer.response)) return;
      await succeeded(answer);
    },
    async *list(filter = {}, options = {}) {
      const first: ListQuery = { limit: 100, ...filter };
      for (let query: ListQuery | undefined = first; query !== undefined; ) {
        const { data, response }: Taken<User[]> = await succeeded(
          api.GET(ALL, { params: { query }, ...options }),
        );
        yield* data;
        query = nextQuery(response);
      }
    },
    ...feedOf(api),
  };
}

type Keyed = Signal & { readonly key?: string };
type Conditional = Signal & { readonly ifVersion?: string };

const keyed = (key: string = crypto.randomUUID()) => ({ header: { 'Idempotency-Key': key } });

const about = (id: string, ifVersion?: string) => ({
  path: { user_id: id },
  ...(ifVersion !== undefined && { header: { 'If-Match': ifVersion } }),
});

function versioned({ data, response }: Taken<User>): VersionedUser {
  return { ...data, version: response.headers.get('etag') ?? '' };
}

function hasFields(user: User, { email, full_name, is_active }: UserChange): boolean {
  const isLeft = (value: unknown, is: unknown) => value === undefined || value === is;
  return (
    isLeft(email ?? undefined, user.email) &&
    isLeft(full_name, user.full_name) &&
    isLeft(is_active ?? undefined, user.is_active)
  );
}
