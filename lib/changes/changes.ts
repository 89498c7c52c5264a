import type { WaitUncounted } from '../http/gateway.ts';
import type { Statements } from '../postgres/index.ts';
import { Semaphore } from '../semaphore.ts';
import { queryWith } from '../text.ts';
import type { ChangesPage } from './change.ts';
import { changeCursor, type Place } from './change-cursor.ts';
import type { ChangesQuery, UserChangesQuery } from './changes-query.ts';
import { ChangeFeed } from './feed.ts';
import type { Page } from './feed-page.ts';
import { LongPoll } from './long-poll.ts';

/** The meaning of `now`: a position after every change. */
const BEYOND_THE_HEAD = Number.MAX_SAFE_INTEGER;

/**
 * Maximum number of waiting requests that read by themselves. A thousand that return together must not fill the pool.
 */
const READING_AT_ONCE = 4;

/** In milliseconds, added to the `wait` of the query: time for which a request waits for such a read. */
const MAX_TURN_MS = 5000;

/** The changes of users, as the endpoints read them. */
export class Changes {
  readonly #feed: ChangeFeed;
  readonly #longPoll: LongPoll;
  readonly #turns = new Semaphore(READING_AT_ONCE, 'too many read the changes at once');

  constructor(statements: Statements) {
    this.#feed = new ChangeFeed(statements);
    this.#longPoll = new LongPoll(this.#feed);
  }

  /** Number of requests that wait for changes. */
  get waiting(): number {
    return this.#longPoll.waiting;
  }

  /**
   * The changes of all users. With `waitUncounted`, it waits for a change for as long as the query says, without being
   * a request in flight.
   *
   * @throws {Problem} cursor_expired_error
   */
  async ofAll(query: ChangesQuery, waitUncounted?: WaitUncounted): Promise<ChangesPage> {
    const { limit, wait, exclude_actor } = query;
    const mayWait = waitUncounted && wait > 0 && limit > 0;
    const { changes, end } = await (mayWait ? this.#readOrWait(query, waitUncounted) : this.#read(query));
    const next = {
      cursor: changeCursor(end),
      limit: limit || undefined,
      exclude_actor,
      wait: wait || undefined,
    };
    return { changes, next: `/api/v1/users/changes?${queryWith(next)}` };
  }

  /**
   * The changes of one user, also after its deletion. The cursor must belong to this user.
   *
   * @throws {Problem} cursor_expired_error, not_found_error
   */
  async ofUser(userId: string, { cursor, limit }: UserChangesQuery): Promise<ChangesPage> {
    const { changes, end } = await this.#feed.read(cursor, { limit, userId });
    const next = { cursor: changeCursor({ ...end, userId }), limit };
    return { changes, next: `/api/v1/users/${userId}/changes?${queryWith(next)}` };
  }

  #read({ cursor, limit, exclude_actor: excludeActor }: ChangesQuery) {
    if (cursor === 'now') return this.#feed.look({ after: BEYOND_THE_HEAD, limit: 0 });
    return this.#feed.read(cursor, { limit, excludeActor });
  }

  async #readOrWait(query: ChangesQuery, waitUncounted: WaitUncounted): Promise<Page> {
    const { cursor, limit, exclude_actor: excludeActor } = query;
    const milliseconds = query.wait * 1000;
    const waitAfter = (after: Place) =>
      waitUncounted(milliseconds, async (over) => this.#longPoll.wait({ after, limit, excludeActor, over }));
    const awaited = typeof cursor === 'object' && (await waitAfter(cursor));
    if (awaited) return awaited;
    const page = await this.#turns.run(milliseconds + MAX_TURN_MS, () => this.#read(query));
    const isAtEnd = page.changes.length === 0 && page.end.position === page.head;
    return (isAtEnd && (await waitAfter(page.end))) || page;
  }
}
