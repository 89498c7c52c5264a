import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { unavailable } from '../http/problem.ts';
import { isMissingColumn, isReadOnly, type PreparedStatement, type Statements } from '../postgres/index.ts';
import { type ChangeRow, identityOf } from './change.ts';
import type { Place } from './change-cursor.ts';
import { isHead } from './head.ts';
import { ChangeNumbering } from './numbering.ts';
import { cursorExpired, noSuchUserOrChange } from './refusals.ts';
import { LOOKED_AT, type Reading, type ReadRow, selectOfAll, selectOfUser } from './select-changes.ts';

/** The identity of position 0, which no change has. */
const ORIGIN = '00000000';

/** A page for one reader, and the place up to which the feed has been read for it. */
export type Page = Pick<FeedPage, 'changes' | 'end'>;

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

/** Refuses because the feed has not been migrated, or throws the fault if it has another cause. */
function refuseUnmigrated(fault?: unknown): never {
  if (fault && !isMissingColumn(fault)) throw fault;
  throw unavailable('the feed of changes has not been migrated', fault);
}

/** A page of changes, and the state of the feed. */
export class FeedPage {
  readonly changes: readonly ChangeRow[];
  readonly isFull: boolean;
  /** The place up to which the feed has been read. */
  readonly end: Place;
  /** The latest position. */
  readonly head: number;
  /** The state of the feed, which every row has. */
  readonly state: ReadRow;
  readonly #expired: number;
  readonly #start: number;
  readonly #seen = new Map<number, ChangeRow>();

  constructor(rows: readonly ReadRow[], { after, limit, userId, excludeActor }: Reading) {
    this.state = rows[0] ?? refuseUnmigrated();
    this.head = Number(this.state.head);
    this.#expired = Number(this.state.expired);
    this.#start = Math.min(after ?? this.#expired, this.head);
    for (const row of rows) if (row.position !== null) this.#seen.set(Number(row.position), row);
    this.changes = [...this.#seen.values()]
      .filter(({ position }) => Number(position) > this.#start)
      .filter(({ user_id, actor }) => (userId === undefined || user_id === userId) && actor !== excludeActor)
      .slice(0, limit);
    this.isFull = limit > 0 && this.changes.length === limit;
    const lookedAt = userId === undefined ? Math.min(this.#start + LOOKED_AT, this.head) : this.head;
    this.end = this.placeAt(this.isFull ? Number(this.changes.at(-1)?.position) : lookedAt);
  }

  /** The place after the change at a position. */
  placeAt(position: number): Place {
    if (position === this.#expired) return { position, identity: identityOfExpired(this.state) };
    const change = this.#seen.get(position);
    return { position, identity: change && identityOf(change) };
  }

  /** Whether every change after a place is kept, as far as this page shows. */
  holds(place: Place): boolean {
    const { position } = place;
    if (position < this.#expired) return false;
    // A standby may not have that change yet. Only a server that accepts writes shows that it is lost.
    if (position > this.head) return !this.state.takes_writes;
    const { identity } = this.placeAt(position);
    // It is unknown whether the change is in the history if an earlier version deleted it, or if it is not on this page.
    const isUnknown =
      identity === undefined &&
      (position === this.#expired || position < this.#start || position > this.end.position);
    return isUnknown || place.identity === undefined || place.identity === identity;
  }
}

/** Undefined if an earlier version deleted that change, because it moves only `expired`. */
function identityOfExpired({ expired, expired_id }: ReadRow): string | undefined {
  if (expired === '0') return ORIGIN;
  const [position, identity] = expired_id?.split('-') ?? [];
  return position === expired ? identity : undefined;
}
