import { type RawBuilder, sql } from 'kysely';
import { type Prepared, prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { type ChangeRow, changeColumns } from './change.ts';

/** Which changes are asked for: those after a position, or from the oldest that is kept. */
export type Reading = {
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
  /** Whether users have been written without changes. */
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

/** Reads the state of the feed and a page of it, by one statement. */
export function selectingChanges(statements: Pick<Statements, 'run'>): Prepared<Reading, ReadRow> {
  const ofAll = prepare<Reading, ReadRow>(statements, 'SELECT user_changes', (given) =>
    select(given, {
      isKnown: sql`true`,
      condition: sql`position <= coalesce(${given.after}::bigint, head.expired) + ${sql.lit(LOOKED_AT)}
        and (${given.excludeActor}::text is null or actor <> ${given.excludeActor}::text)`,
    }),
  );
  const ofUser = prepare<Reading, ReadRow>(statements, 'SELECT user_changes', (given) => {
    const isOfUser = sql`user_id = ${given.userId}::uuid`;
    return select(given, {
      isKnown: sql`exists (select from users where id = ${given.userId}::uuid)
        or exists (select from user_changes where ${isOfUser} and position > head.expired)
        or exists (select from user_changes_unnumbered where ${isOfUser})`,
      condition: isOfUser,
    });
  });
  return (reading) => (reading.userId === undefined ? ofAll : ofUser)(reading);
}

function select(
  { after, limit }: Reading,
  { isKnown, condition }: Record<'isKnown' | 'condition', RawBuilder<unknown>>,
): RawBuilder<ReadRow> {
  return sql`
    select head.position as head, head.expired, head.is_interrupted,
      exists (select from user_changes_unnumbered) as has_unnumbered,
      current_setting('transaction_read_only') = 'off' as takes_writes,
      ${isKnown} as is_known, change.*
    from user_changes_head as head
    left join lateral (
      select ${changeColumns} from user_changes
      where position > coalesce(${after}::bigint, head.expired) and ${condition}
      order by position limit ${limit}
    ) as change on true
    order by change.position`;
}
