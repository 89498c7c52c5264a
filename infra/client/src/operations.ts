import type { Client } from 'openapi-fetch';
import { LEFT_BY_NULL, READ_ONLY } from './checks.ts';
import { isProblem, WrongValue } from './problem.ts';
import { refuseWrongAttempts, wasSentAgain } from './retries.ts';
import type { components, paths } from './schema.ts';
import { type Signal, succeeded, type Taken, unexpected } from './service-response.ts';
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

type Keyed = Signal & { readonly key?: string };
type Conditional = Signal & { readonly ifVersion?: string };

const ONE = '/api/v1/users/{user_id}';

/** In milliseconds, between two attempts of `update`. */
const LONGEST_PAUSE_MS = 1_000;

/** The functions for users that the caller names. `key` is the caller's own Idempotency-Key. */
export type Operations = ReturnType<typeof operationsOf>;

export function operationsOf(api: Client<paths>) {
  async function get(id: string, options: Signal = {}): Promise<VersionedUser> {
    return versioned(await succeeded(api.GET(ONE, about(id, options))), id);
  }

  async function createBatch(items: readonly NewUser[], mode: 'atomic' | 'partial', given: Keyed = {}) {
    const body = { items: [...items], mode };
    for (const item of items) refuseLostValues(item);
    const call = api.POST('/api/v1/users/batch', { body, ...keyed(given) });
    const { data, response } = await succeeded(call);
    if (response.status !== (mode === 'atomic' ? 201 : 200) || data.length !== items.length)
      throw unexpected(response, 'not one result per user');
    return data;
  }

  async function change(id: string, body: UserChange, given: Conditional = {}): Promise<VersionedUser> {
    const { ifVersion: _, ...options } = given;
    refuseLostValues(body);
    const answer = await api.PATCH(ONE, { body, ...about(id, given) });
    // If a response was lost, this may be the version that the change itself made.
    if (answer.response.status === 412 && wasSentAgain(answer.response)) {
      const user = await get(id, options);
      if (hasFields(user, body)) return user;
    }
    return versioned(await succeeded(answer), id);
  }

  return {
    /** Creates a user exactly once, also if responses are lost. */
    async create(body: NewUser, options: Keyed = {}): Promise<VersionedUser> {
      refuseLostValues(body);
      return versioned(await succeeded(api.POST('/api/v1/users/', { body, ...keyed(options) })));
    },
    /** Creates all users or none: up to 100. */
    createAll: (users: readonly NewUser[], options?: Keyed) =>
      createBatch(users, 'atomic', options) as Promise<User[]>,
    /** Creates the users that can be created, and returns one result per user. */
    createSome: (users: readonly NewUser[], options?: Keyed) =>
      createBatch(users, 'partial', options) as Promise<BatchResult[]>,
    /** The user. */
    get,
    /** The user, or undefined if there is none. */
    find: (id: string, options?: Signal): Promise<VersionedUser | undefined> =>
      get(id, options).catch((error) => {
        if (!isProblem(error, 'not_found_error')) throw error;
        return undefined;
      }),
    /** Changes the given fields. With `ifVersion` it fails if another caller has changed the user meanwhile. */
    change,
    /**
     * Applies the result of `decide` for the current user, without losing another caller's change. If another caller was
     * first, the user is read and `decide` is called again. Undefined changes nothing.
     */
    async update(
      id: string,
      decide: (user: VersionedUser) => UserChange | undefined | Promise<UserChange | undefined>,
      { attempts = 10, ...options }: Signal & { readonly attempts?: number } = {},
    ): Promise<VersionedUser> {
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
    /** Deletes the user. With `ifVersion` it fails if another caller has changed the user meanwhile. */
    async remove(id: string, options?: Conditional): Promise<void> {
      const answer = await api.DELETE(ONE, about(id, options));
      // If the response to an earlier attempt was lost, that attempt may have deleted the user.
      if (answer.response.status !== 404 || !wasSentAgain(answer.response)) await succeeded(answer);
    },
  };
}

// An option that is given and undefined is refused: a random key, or no condition, would not be what the caller means.
function keyed(given: Keyed) {
  // Browsers have `crypto.randomUUID` only in pages that came by HTTPS.
  const random = () => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16));
  const { key, ...options } = { key: random().join('-'), ...given };
  return { params: { header: { 'Idempotency-Key': key } }, ...options };
}

function about(id: string, given: Conditional = {}) {
  const { ifVersion, ...options } = given;
  const header = 'ifVersion' in given && { header: { 'If-Match': strongTag(ifVersion) } };
  return { params: { path: { user_id: id }, ...header }, ...options };
}

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

/** JSON writes these values as null, or leaves them out, which would clear a field or leave it. */
function refuseLostValues(body: object): void {
  for (const [name, value] of Object.entries(body ?? {}))
    if (/^(function|symbol)$/.test(typeof value) || (typeof value === 'number' && !Number.isFinite(value)))
      throw new WrongValue(`${name} must be a value of JSON`);
}

/** Whether the user has the values of the change, which may be a copy of the user with other values. */
function hasFields(user: User, change: UserChange): boolean {
  const values: Readonly<Record<string, unknown>> = user;
  return Object.entries(change).every(
    ([name, value]) =>
      value === undefined ||
      name === 'version' ||
      READ_ONLY.includes(name) ||
      (value === null && LEFT_BY_NULL.includes(name)) ||
      value === (values[name] ?? null),
  );
}
