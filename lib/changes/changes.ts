import type { WaitUncounted } from '../http/gateway.ts';
import { queryWith } from '../http/next-link.ts';
import { isReadOnly, type PreparedStatement, repeatUntilDone, type Statements } from '../postgres/index.ts';
import { Semaphore } from '../semaphore.ts';
import { USERS_PATH } from '../users/user.ts';
import { changeCursor, type Place } from './change-cursor.ts';
import type { ChangesQuery, UserChangesQuery } from './changes-query.ts';
import type { ChangesPage } from './changes-reply.ts';
import { FeedPage, type Page, type Reading, type ReadRow, selectOfAll, selectOfUser } from './feed-page.ts';
import { LongPoll } from './long-poll.ts';
import { ChangeNumbering } from './numbering.ts';
import { cursorExpired, noSuchUserOrChange } from './refusals.ts';

/** The meaning of `now`: a position after every change. */
const BEYOND_THE_HEAD = Number.MAX_SAFE_INTEGER;

/** Maximum number of waiting requests that read by themselves at the same time. */
const MAX_READS = 4;

/** In milliseconds, added to the `wait` of the query: time for which a request waits for such a read. */
const MAX_READ_WAIT_MS = 5000;

export class Changes {
  readonly #selectOfAll: PreparedStatement<Reading, ReadRow>;
  readonly #selectOfUser: PreparedStatement<Reading, ReadRow>;
  readonly #numbering: ChangeNumbering;
  readonly #longPoll = new LongPoll((reading) => this.#look(reading));
  readonly #reads = new Semaphore(MAX_READS, 'too many read the changes at once');

  constructor(statements: Statements) {
    this.#selectOfAll = statements.ownSessionRead('SELECT user_changes', selectOfAll);
    this.#selectOfUser = statements.ownSessionRead('SELECT user_changes', selectOfUser);
    this.#numbering = new ChangeNumbering(statements);
  }

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
    const { cursor, limit, wait, exclude_actor } = query;
    const mayWait = waitUncounted && wait > 0 && limit > 0;
    const { changes, end } = await (mayWait
      ? this.#readOrWait(query, waitUncounted)
      : this.#read(cursor, { limit, excludeActor: exclude_actor }));
    const next = {
      cursor: changeCursor(end),
      limit: limit || undefined,
      exclude_actor,
      wait: wait || undefined,
    };
    return { changes, next: `${USERS_PATH}/changes?${queryWith(next)}` };
  }

  /**
   * The changes of one user, also after its deletion. The cursor must belong to this user.
   *
   * @throws {Problem} cursor_expired_error, not_found_error if neither the user nor a change of it exists
   */
  async ofUser(userId: string, { cursor, limit }: UserChangesQuery): Promise<ChangesPage> {
    const { changes, end } = await this.#read(cursor, { limit, userId });
    const next = { cursor: changeCursor({ ...end, userId }), limit };
    return { changes, next: `${USERS_PATH}/${userId}/changes?${queryWith(next)}` };
  }

  async #readOrWait(query: ChangesQuery, waitUncounted: WaitUncounted): Promise<Page> {
    const { cursor, limit, exclude_actor: excludeActor } = query;
    const milliseconds = query.wait * 1000;
    const waitAfter = (after: Place, head?: number) =>
      waitUncounted(milliseconds, async (over) =>
        this.#longPoll.wait({ after, limit, excludeActor, over }, head),
      );
    const awaited = typeof cursor === 'object' && (await waitAfter(cursor));
    if (awaited) return awaited;
    const page = await this.#reads.run(milliseconds + MAX_READ_WAIT_MS, () =>
      this.#read(cursor, { limit, excludeActor }),
    );
    const isAtEnd = page.changes.length === 0 && page.end.position === page.head;
    return (isAtEnd && (await waitAfter(page.end, page.head))) || page;
  }

  /** Reads a page after a place, or from the oldest change that is kept. For `now` it is empty, at the end of the feed. */
  async #read(cursor: ChangesQuery['cursor'], reading: Omit<Reading, 'after'>) {
    if (cursor === 'now') return this.#look({ after: BEYOND_THE_HEAD, limit: 0 });
    const page = await this.#look({ ...reading, after: cursor?.position });
    // An expired cursor is refused first, whatever user it belongs to.
    if (cursor && !page.holds(cursor)) throw cursorExpired();
    if (!page.state.is_known) throw noSuchUserOrChange();
    const { changes, head, end } = page;
    return { changes, head, end: cursor && cursor.position > head ? cursor : end };
  }

  /**
   * Reads a page, also after a position that has expired. The page includes every change whose write was answered
   * before the call: changes without a position get one first, unless PostgreSQL accepts no writes.
   */
  #look(reading: Reading): Promise<FeedPage> {
    const select = reading.userId === undefined ? this.#selectOfAll : this.#selectOfUser;
    let isNumbered = false;
    return repeatUntilDone(async () => {
      const page = new FeedPage(await select.run(reading), reading);
      const { has_unnumbered, takes_writes } = page.state;
      const isComplete = isNumbered || !has_unnumbered || page.isFull || page.end.position < page.head;
      if (!takes_writes || isComplete) return page;
      try {
        isNumbered = await this.#numbering.numberChanges();
      } catch (fault) {
        // PostgreSQL has become read-only since the read.
        if (isReadOnly(fault)) return page;
        throw fault;
      }
      return undefined;
    });
  }
}
