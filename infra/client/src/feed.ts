import type { Client } from 'openapi-fetch';
import { MAX_CHANGES, MAX_WAIT_SECONDS } from './checks.ts';
import { nextQuery } from './link.ts';
import { WrongValue } from './problem.ts';
import type { components, paths } from './schema.ts';
import { type Signal, succeeded, type Taken, unexpected } from './service-response.ts';
import { sleep } from './time-limit.ts';

/** A change of a user, a CloudEvent. */
export type Change = components['schemas']['Change'];
/** Changes, and the cursor after them. */
export type ChangePage = { readonly changes: readonly Change[]; readonly cursor: string };

/** Where a reader of the changes starts, and when it ends. */
export type FeedOptions = Signal & {
  /** The start: a cursor, `now` or, if absent, the oldest change. */
  readonly from?: string;
  /** Whether to wait for further changes at the end of the feed. */
  readonly follow?: boolean;
  /** Maximum number of seconds for which a request waits for changes, from 1 to 20. The default is 15. */
  readonly wait?: number;
  /** Maximum number of changes in a page, from 1 to 1000 (default). */
  readonly limit?: number;
  /** The `sub` of a caller whose changes are left out. */
  readonly excludeActor?: string;
};

type FeedQuery = NonNullable<paths['/api/v1/users/changes']['get']['parameters']['query']>;

const FEED = '/api/v1/users/changes';

/** Maximum number of changes in a page, unless a reader gives another. A page with fewer ends at the latest change. */
export const PAGE = MAX_CHANGES;
/** Some gateways end a request after 20 s. */
const DEFAULT_WAIT_SECONDS = 15;

/** In milliseconds: a wait that ends sooner without a change has ended at once. */
const AT_ONCE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;

/** The functions that read the changes. */
export type Feed = ReturnType<typeof feedOf>;

export function feedOf(api: Client<paths>) {
  /** How many waits in a row have ended at once without a change, by cursor. Every page may have an iterator of its own. */
  const endedAtOnce = new Map<string | undefined, number>();

  async function read(query: FeedQuery, options: Signal): Promise<ChangePage> {
    const { cursor, wait } = query;
    const count = endedAtOnce.get(cursor) ?? 0;
    const longest = Math.min(100 * 2 ** count, LONGEST_PAUSE_MS);
    // The service did not wait twice. It has too many waiting requests, or its feed went back.
    if (wait && count >= 2) await sleep(longest * (0.5 + Math.random() / 2), options.signal);
    const begin = performance.now();
    const page = pageOf(await succeeded(api.GET(FEED, { params: { query }, ...options })), cursor);
    if (wait && page.cursor === cursor && performance.now() - begin < AT_ONCE_MS)
      endedAtOnce.set(cursor, count + 1);
    else endedAtOnce.delete(cursor);
    return page;
  }

  async function* changePages(given: FeedOptions = {}): AsyncGenerator<ChangePage, void> {
    const { from, follow, wait = DEFAULT_WAIT_SECONDS, limit = PAGE, excludeActor, ...options } = given;
    // With 0, a reader that follows the changes would ask for them without a pause.
    if (!Number.isInteger(wait) || wait < 1 || wait > MAX_WAIT_SECONDS)
      throw new WrongValue(`wait must be an integer from 1 to ${MAX_WAIT_SECONDS}`);
    for (let start = (('from' in given) ? { cursor: from } : {}) as { cursor?: string }; ; ) {
      const { cursor } = start;
      const query = {
        limit,
        // If a response is lost, the changes during a wait from `now` would be skipped.
        ...(follow && cursor !== 'now' && { wait }),
        // A value that is given and undefined is refused: it would mean other changes.
        ...('excludeActor' in given && { exclude_actor: excludeActor }),
        ...start,
      } as FeedQuery;
      const page = await read(query, options);
      // With `excludeActor`, a page may be empty before the end of the feed. At the end the cursor stays the same.
      const isEnd = page.changes.length === 0 && page.cursor === cursor;
      if (isEnd && !follow) return;
      yield page;
      start = { cursor: page.cursor };
    }
  }

  return {
    /** The changes of all users in pages, oldest first, each with the cursor to continue from, also empty ones. */
    changePages,
    /** The changes of all users, oldest first. */
    async *changes(options?: FeedOptions): AsyncGenerator<Change, void> {
      for await (const { changes } of changePages(options)) yield* changes;
    },
    /** The changes of one user, also after its deletion. */
    async *changesOf(id: string, options: Signal = {}): AsyncGenerator<Change, void> {
      for (let query: FeedQuery = { limit: PAGE }; ; ) {
        const path = { user_id: id };
        const call = api.GET('/api/v1/users/{user_id}/changes', { params: { path, query }, ...options });
        const taken = await succeeded(call);
        const { changes, cursor } = pageOf(taken, query.cursor);
        if (changes.length === 0) return;
        if (changes.some(({ subject }) => subject !== id.toLowerCase()))
          throw unexpected(taken.response, 'the changes of another user');
        yield* changes;
        query = { limit: PAGE, cursor };
      }
    },
    /** The cursor of the latest change. Reading from it returns only later changes. */
    head: async (options: Signal = {}): Promise<string> =>
      (await read({ cursor: 'now', limit: 0 }, options)).cursor,
  };
}

/** The page that the service returned after a cursor. Every page has a link, because changes go on. */
function pageOf({ data, response }: Taken<Change[]>, after: string | undefined): ChangePage {
  const { cursor } = nextQuery(response) ?? {};
  if (!cursor) throw unexpected(response, 'changes without a link to the next page');
  if (data.length > 0 && cursor === after)
    throw unexpected(response, 'changes whose link leads to themselves');
  return { changes: data, cursor };
}
