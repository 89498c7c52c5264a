import { MAX_IDS } from './checks.ts';
import type { Change, FeedOptions } from './feed.ts';
import type { User } from './operations.ts';
import { isProblem } from './problem.ts';
import type { Signal } from './service-response.ts';
import { sleep } from './time-limit.ts';
import type { Users } from './users.ts';

type Awaitable<Value> = Value | Promise<Value>;

/** A copy of the users. An operation on it may be repeated after a crash, and must then have no further effect. */
export type Mirror = {
  /** The cursor that was stored last; undefined before the first copy is complete. */
  cursor(): Awaitable<string | undefined>;
  /** The ids of all users in the copy. */
  ids(): Iterable<string> | AsyncIterable<string>;
  put(user: User): Awaitable<void>;
  remove(id: string): Awaitable<void>;
  /** Stores the cursor. All changes before it are in the copy. */
  keep(cursor: string): Awaitable<void>;
};

type MirrorOptions = Pick<FeedOptions, 'signal' | 'wait'> & {
  /** Whether to continue for ever. Otherwise it ends when the copy is up to date. */
  readonly follow?: boolean;
  /** Whether a copy with users may become empty, because the service has none. */
  readonly allowEmpty?: boolean;
};

/**
 * Keeps a copy of the users up to date. The first time, and whenever the changes after the cursor are no longer
 * available, it reads the list, and then follows the changes from before the list. Otherwise it continues from the
 * cursor. It ends when `signal` aborts.
 */
export async function mirror(
  users: Users,
  given: Mirror,
  { follow = true, allowEmpty = false, wait, signal }: MirrorOptions = {},
): Promise<void> {
  const copy = untilAborted(given, signal);
  const options = signal ? { signal } : {};
  const feed = { follow, ...(wait !== undefined && { wait }), ...options };
  for (let expirations = 0; ; expirations += 1) {
    try {
      // The changes after the list may expire only while it is read, or at a service that lost changes again.
      if (expirations > 1) await sleep(Math.min(1_000 * 2 ** expirations, 60_000), signal);
      const kept = expirations === 0 ? await copy.cursor() : undefined;
      const from = kept ?? (await copyAll(users, copy, allowEmpty, options));
      for await (const { changes, cursor } of users.changePages({ from, ...feed })) {
        await apply(changes, users, copy, options);
        await copy.keep(cursor);
        expirations = 0;
      }
      return;
    } catch (error) {
      if (signal?.aborted) return;
      if (!isProblem(error, 'cursor_expired_error')) throw error;
    }
  }
}

/** The copy, of which no operation begins after the abort. */
function untilAborted(copy: Mirror, signal: AbortSignal | undefined): Mirror {
  const get = (_: object, name: keyof Mirror) => {
    if (signal?.aborted) throw signal.reason;
    return copy[name].bind(copy);
  };
  return new Proxy({}, { get } as ProxyHandler<object>) as Mirror;
}

/** Returns the cursor from before the list, so that all later changes are read afterwards. */
async function copyAll(users: Users, copy: Mirror, allowEmpty: boolean, options: Signal): Promise<string> {
  const head = await users.head(options);
  const seen = new Set<string>();
  for await (const user of users.list({ limit: 1000 }, options)) {
    seen.add(user.id);
    await copy.put(user);
  }
  for await (const id of copy.ids()) {
    if (seen.size === 0 && !allowEmpty)
      throw new Error(
        'The service has no users, and the copy has some. If that is right, pass allowEmpty: true.',
      );
    if (!seen.has(id)) await copy.remove(id);
  }
  await copy.keep(head);
  return head;
}

/**
 * Reads the current state of each user that a change names. A user is removed only if its last change is its deletion and
 * the list does not contain it. A later deletion is a later change.
 */
async function apply(changes: readonly Change[], users: Users, copy: Mirror, options: Signal): Promise<void> {
  const latest = new Map(changes.map(({ subject, type }) => [subject, type]));
  const ids = [...latest.keys()];
  for (let first = 0; first < ids.length; first += MAX_IDS) {
    const missing = new Set(ids.slice(first, first + MAX_IDS));
    for await (const user of users.list({ ids: [...missing], limit: MAX_IDS }, options)) {
      missing.delete(user.id);
      await copy.put(user);
    }
    for (const id of missing) if (latest.get(id) === 'user.deleted') await copy.remove(id);
  }
}
