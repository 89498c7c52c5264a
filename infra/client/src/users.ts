import createClient, { type Client } from 'openapi-fetch';
import { nextQuery, type Signal, succeeded, type Taken } from './answers.ts';
import { authorize } from './authorize.ts';
import type { TokenSource } from './client-credentials.ts';
import { type Feed, feedOf } from './feed.ts';
import { isProblem } from './problem.ts';
import { type RetryOptions, sendAgain, wasSentAgain } from './retries.ts';
import type { components, paths } from './schema.ts';

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
    // A response was lost: this may be the version that the change itself made.
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
    async findByExternalId(external_id, options = {}) {
      const { data } = await succeeded(api.GET(ALL, { params: { query: { external_id } }, ...options }));
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
      // If the response to an earlier attempt was lost, that attempt may have deleted the user.
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
