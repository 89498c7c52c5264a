import { type RawBuilder, sql } from 'kysely';
import { unavailable } from '../http/problem.ts';
import { type ChangeRow, changeColumns, identityOf } from './change.ts';
import type { Place } from './change-cursor.ts';
import { headRow, unnumbered } from './numbering.ts';

/** The identity of position 0, which no change has. */
const ORIGIN = '00000000';

/** A page for one reader, and the place up to which the feed has been read for it. */
export type Page = Pick<FeedPage, 'changes' | 'end'>;

/**
 * Selects at most `limit` changes after a position, of one user or except those of an actor. Undefined as the position
 * means from the oldest one; a position after the head selects none.
 */
export type Reading = {
  readonly after: number | undefined;
  readonly limit: number;
  readonly userId?: string | undefined;
  readonly excludeActor?: string | undefined;
};

/** The state of the feed, in each row, and a change, or null if there is none. */
export type ReadRow = {
  readonly head: string;
  /** Changes up to this position have been deleted. */
  readonly expired: string;
  /** The `id` of the last deleted change, unless an earlier version deleted it. */
  readonly expired_id: string | null;
  readonly has_unnumbered: boolean;
  readonly takes_writes: boolean;
  /** For the changes of one user: whether the user or a change of it exists. */
  readonly is_known: boolean;
} & (ChangeRow | { readonly position: null });

/**
 * Maximum number of positions that one page of the changes of all users covers, if an excluded actor wrote many of
 * them. Positions have no gaps. Without an excluded actor every page before the end is therefore full.
 */
const LOOKED_AT = 2000;

/**
 * A page of the changes of all users. The rows also include, if they are kept, the change before the page and the last
 * one that the page covers. The cursors before and after the page contain their identities.
 */
export function selectOfAll(given: Reading): RawBuilder<ReadRow> {
  const last = sql`head.start + ${sql.lit(LOOKED_AT)}`;
  const changes = sql`select ${changeColumns} from user_changes
      where position between head.start and ${last}
        and (${given.excludeActor}::text is null or actor <> ${given.excludeActor}::text
          or position in (head.start, ${last}, head.position))
      order by position limit ${given.limit}::bigint + 2`;
  return select(given.after, sql`true`, changes);
}

/**
 * A page of the changes of one user. Each part can use one index only (both columns, or positions), whatever
 * PostgreSQL's statistics of the tables are.
 */
export function selectOfUser(given: Reading): RawBuilder<ReadRow> {
  const isOfUser = sql`user_id = ${given.userId}::uuid`;
  const isKnown = sql`exists (select from users where id = ${given.userId}::uuid)
      or exists (select from user_changes where ${isOfUser} and position + 0 > head.expired)
      or exists (select from ${unnumbered(sql`all`)} as unnumbered where ${isOfUser})`;
  const changes = sql`(select ${changeColumns} from user_changes
        where ${isOfUser} and position > head.start order by position limit ${given.limit}::bigint)
      union (select ${changeColumns} from user_changes where position >= head.start order by position limit 1)
      union (select ${changeColumns} from user_changes where position <= head.position order by position desc limit 1)`;
  return select(given.after, isKnown, changes);
}

function select(after: unknown, isKnown: RawBuilder<unknown>, changes: RawBuilder<unknown>) {
  // The head is evaluated once, and not for each row of the page.
  return sql<ReadRow>`
    with head as materialized (
      select head.*, least(coalesce(${after}::bigint, expired), position) as start,
        exists (select from ${unnumbered(sql`1`)} as unnumbered) as has_unnumbered, ${isKnown} as is_known
      from ${headRow} as head
    )
    select head.position as head, expired, expired_id, has_unnumbered, is_known,
      current_setting('transaction_read_only') = 'off' as takes_writes, change.*
    from head left join lateral (${changes}) as change on true
    order by change.position`;
}

export class FeedPage {
  readonly changes: readonly ChangeRow[];
  readonly isFull: boolean;
  /** The place up to which the feed has been read. */
  readonly end: Place;
  readonly head: number;
  /** The state of the feed, which every row has. */
  readonly state: ReadRow;
  readonly #expired: number;
  readonly #start: number;
  readonly #seen = new Map<number, ChangeRow>();

  constructor(rows: readonly ReadRow[], { after, limit, userId, excludeActor }: Reading) {
    const [state] = rows;
    if (!state) throw unavailable('the feed of changes has no head');
    this.state = state;
    this.head = Number(state.head);
    this.#expired = Number(state.expired);
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
