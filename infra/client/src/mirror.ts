import type { Signal } from './answers.ts';
import { isProblem } from './problem.ts';
import type { User, Users } from './users.ts';

type Awaitable<Value> = Value | Promise<Value>;

/** A copy of the users. What is done to it may be done again after a crash, and must have no other effect then. */
export type Mirror = {
  /** The cursor that was kept last; undefined before the first copy is whole. */
  cursor(): Awaitable<string | undefined>;
  /** The ids of all users in the copy. */
  ids(): Iterable<string> | AsyncIterable<string>;
  put(user: User): Awaitable<void>;
  remove(id: string): Awaitable<void>;
  /** Keeps the cursor; all changes before it are in the copy. */
  keep(cursor: string): Awaitable<void>;
};

type MirrorOptions = Signal & {
  /** Whether to go on for ever; else it ends when the copy is up to date. */
  readonly follow?: boolean;
};

/** The most ids that a list takes. */
const MOST_IDS = 100;

/**
 * Keeps a copy of the users: the first time (and whenever the changes since the cursor are no longer kept) from a walk of
 * the list, after which the changes are followed from where they stood before it; else from the cursor on. It ends when
 * `signal` says so.
 */
export async function mirror(
  users: Users,
  copy: Mirror,
  { follow = true, signal }: MirrorOptions = {},
): Promise<void> {
  const options = signal ? { signal } : {};
  for (;;) {
    try {
      const from = (await copy.cursor()) ?? (await copyAll(users, copy, options));
      for await (const { changes, cursor } of users.changePages({ from, follow, ...options })) {
        await apply([...new Set(changes.map(({ subject }) => subject))], users, copy, options);
        await copy.keep(cursor);
      }
      return;
    } catch (error) {
      if (signal?.aborted) return;
      if (!isProblem(error, 'cursor_expired_error')) throw error;
      await copyAll(users, copy, options);
    }
  }
}

/** Gives the cursor of the moment before the walk, so that whatever happens meanwhile is read afterwards. */
async function copyAll(users: Users, copy: Mirror, options: Signal): Promise<string> {
  const head = await users.head(options);
  const seen = new Set<string>();
  for await (const user of users.list({ limit: 1000 }, options)) {
    seen.add(user.id);
    await copy.put(user);
  }
  for await (const id of copy.ids()) if (!seen.has(id)) await copy.remove(id);
  await copy.keep(head);
  return head;
}

/** Reads each user that is named as it is now; whoever is not there has been deleted. */
async function apply(ids: readonly string[], users: Users, copy: Mirror, options: Signal): Promise<void> {
  for (let first = 0; first < ids.length; first += MOST_IDS) {
    const asked = ids.slice(first, first + MOST_IDS);
    const gone = new Set(asked);
    for await (const user of users.list({ ids: asked, limit: MOST_IDS }, options)) {
      gone.delete(user.id);
      await copy.put(user);
    }
    for (const id of gone) await copy.remove(id);
  }
}
