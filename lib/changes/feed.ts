import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { isReadOnly, type PreparedStatement, type Statements } from '../postgres/index.ts';
import type { Place } from './change-cursor.ts';
import {
  FeedPage,
  type Page,
  type Reading,
  type ReadRow,
  refuseUnmigrated,
  selectOfAll,
  selectOfUser,
} from './feed-page.ts';
import { isHead } from './head.ts';
import { ChangeNumbering } from './numbering.ts';
import { cursorExpired, noSuchUserOrChange } from './refusals.ts';

/** The feed of changes in PostgreSQL. */
export class ChangeFeed {
  readonly #selectOfAll: PreparedStatement<Reading, ReadRow>;
  readonly #selectOfUser: PreparedStatement<Reading, ReadRow>;
  readonly #numbering: ChangeNumbering;
  readonly #resume: PreparedStatement<{ identity: string }, unknown>;

  constructor(statements: Statements) {
    this.#selectOfAll = statements.single('SELECT user_changes', selectOfAll);
    this.#selectOfUser = statements.single('SELECT user_changes', selectOfUser);
    this.#numbering = new ChangeNumbering(statements);
    this.#resume = statements.single(
      'UPDATE user_changes_head',
      ({ identity }) => sql`update user_changes_head
        set position = position + 1, expired = position + 1, expired_id = (position + 1) || '-' || ${identity}::text,
          is_interrupted = false
        where is_interrupted and ${isHead}`,
    );
  }

  /**
   * Reads a page after a place, or from the oldest change that is kept.
   *
   * @throws {Problem} cursor_expired_error; not_found_error if neither the user nor a change of it exists
   */
  async read(
    after: Place | undefined,
    reading: Omit<Reading, 'after'>,
  ): Promise<Page & Pick<FeedPage, 'head'>> {
    const page = await this.look({ ...reading, after: after?.position });
    // An expired cursor is refused first, whatever user it belongs to.
    if (after && !page.holds(after)) throw cursorExpired();
    if (!page.state.is_known) throw noSuchUserOrChange();
    if (!after || after.position <= page.head) return page;
    return { changes: page.changes, head: page.head, end: after };
  }

  /**
   * Reads a page, also after a position that has expired. The page includes every change whose write was answered
   * before the call: changes without a position get one first, unless PostgreSQL accepts no writes.
   */
  async look(reading: Reading): Promise<FeedPage> {
    const select = reading.userId === undefined ? this.#selectOfAll : this.#selectOfUser;
    let isNumbered = false;
    // The time limit of the request's statements ends the loop.
    for (;;) {
      const page = new FeedPage(await select.run(reading).catch(refuseUnmigrated), reading);
      const { has_unnumbered, is_interrupted, takes_writes } = page.state;
      const isComplete = isNumbered || !has_unnumbered || page.isFull || page.end.position < page.head;
      if (!takes_writes || (isComplete && !is_interrupted)) return page;
      try {
        if (is_interrupted) await this.#resume.run({ identity: randomBytes(4).toString('hex') });
        else isNumbered = await this.#numbering.numberChanges();
      } catch (fault) {
        // PostgreSQL has become read-only since the read.
        if (isReadOnly(fault)) return page;
        throw fault;
      }
    }
  }
}
