import { type RawBuilder, sql } from 'kysely';
import { type Prepared, prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { type ChangeRow, changeColumns } from './change.ts';
import { headRow, unnumbered } from './head.ts';

/** Which changes are asked for. */
export type Reading = {
  /** Those after this position; from the oldest that is kept if undefined, none if it is beyond the head. */
  readonly after: number | undefined;
  /** At most so many. */
  readonly limit: number;
  /** Of one user alone. */
  readonly userId?: string | undefined;
  /** All but those of this actor. */
  readonly excludeActor?: string | undefined;
};

/** How the feed stands, in each row; and a change, or null where there is none. */
export type ReadRow = {
  /** The last position that was given. */
  readonly head: string;
  /** Changes up to this position are not kept any more. */
  readonly expired: string;
  /** The `id` of the last of these, unless an earlier version deleted it. */
  readonly expired_id: string | null;
  /** Whether an earlier version has written users without changes. */
  readonly is_interrupted: boolean;
  readonly has_unnumbered: boolean;
  readonly takes_writes: boolean;
  /** Of the changes of one user: whether there is such a user, or a change. */
  readonly is_known: boolean;
} & (ChangeRow | { readonly position: null });

/**
 * So many positions are looked at for a page of the changes of all, should the actor who is left out be a busy one. No
 * position between two changes is empty, so that without such an actor every page is full.
 */
export const LOOKED_AT = 2000;

/**
 * Reads the state of the feed and a page of it, by one statement. Among the rows are also, where they are kept, the change
 * that the page comes after and the last one that was looked at: their identities belong to the cursors before and behind it.
 */
export function selectingChanges(statements: Pick<Statements, 'run'>): Prepared<Reading, ReadRow> {
  const ofAll = prepare<Reading, ReadRow>(statements, 'SELECT user_changes', (given) => {
    const last = sql`head.start + ${sql.lit(LOOKED_AT)}`;
    return select(given, {
      isKnown: sql`true`,
      changes: sql`select ${changeColumns} from user_changes
        where position between head.start and ${last}
          and (${given.excludeActor}::text is null or actor <> ${given.excludeActor}::text
            or position in (head.start, ${last}, head.position))
        order by position limit ${given.limit}::bigint + 2`,
    });
  });
  const ofUser = prepare<Reading, ReadRow>(statements, 'SELECT user_changes', (given) => {
    const isOfUser = sql`user_id = ${given.userId}::uuid`;
    // So that, whatever PostgreSQL knows of the tables, one index alone helps: that of both columns, or that of positions.
    return select(given, {
      isKnown: sql`exists (select from users where id = ${given.userId}::uuid)
        or exists (select from user_changes where ${isOfUser} and position + 0 > head.expired)
        or exists (select from ${unnumbered(sql`all`)} as unnumbered where ${isOfUser})`,
      changes: sql`(select ${changeColumns} from user_changes
          where ${isOfUser} and position > head.start order by position limit ${given.limit}::bigint)
        union (select ${changeColumns} from user_changes where position >= head.start order by position limit 1)
        union (select ${changeColumns} from user_changes where position <= head.position order by position desc limit 1)`,
    });
  });
  return (reading) => (reading.userId === undefined ? ofAll : ofUser)(reading);
}

function select(
  { after }: Reading,
  { isKnown, changes }: Record<'isKnown' | 'changes', RawBuilder<unknown>>,
): RawBuilder<ReadRow> {
  // What is asked of the head is asked once, and not for each row of the page.
  return sql`
    with head as materialized (
      select head.*, least(coalesce(${after}::bigint, expired), position) as start,
        exists (select from ${unnumbered(sql`1`)} as unnumbered) as has_unnumbered, ${isKnown} as is_known
      from ${headRow} as head
    )
    select head.position as head, expired, expired_id, is_interrupted, has_unnumbered, is_known,
      current_setting('transaction_read_only') = 'off' as takes_writes, change.*
    from head left join lateral (${changes}) as change on true
    order by change.position`;
}
