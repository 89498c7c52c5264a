import { type RawBuilder, sql } from 'kysely';
import type { ServicePrincipal } from '../auth/principal.ts';
import { currentRequest } from '../request-scope.ts';

/** Who writes, and by which request: what a change keeps of its write. */
export type Author = {
  /** The caller: `sub` of its token. */
  readonly actor: string;
  readonly request_id: string;
};

/** The caller of the current request, as the author of what it writes. */
export function authorOf({ subject }: ServicePrincipal): Author {
  return { actor: subject, request_id: currentRequest()?.requestId ?? '' };
}

/** The kinds of change, as the table keeps them. */
export const CHANGE_TYPES = { created: 1, updated: 2, deleted: 3 } as const;

/** The fields that an update can change; the bit of each in `changed`. */
export const FIELD_BITS = { email: 1, full_name: 2, is_active: 4 } as const;

/**
 * A common table expression that records, in the same statement, what another, `written`, has written: rows with
 * `id`, `version`, `changed` and `moment`. Positions come later (`numbering.ts`), in the order of the sequence that is
 * drawn here. By now the rows are locked, so that the versions of one user have it in their order.
 */
export function recorded(
  type: keyof typeof CHANGE_TYPES,
  { actor, request_id }: Author,
): RawBuilder<unknown> {
  return recordedFrom(sql`written`, type, sql`${actor}::text, ${request_id}::text`);
}

/** Likewise, where each row has an author of its own: `given` has it, by the `id` of the row. */
export function recordedByEach(type: keyof typeof CHANGE_TYPES): RawBuilder<unknown> {
  return recordedFrom(sql`written join given using (id)`, type, sql`given.actor, given.request_id`);
}

function recordedFrom(
  rows: RawBuilder<unknown>,
  type: keyof typeof CHANGE_TYPES,
  author: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`recorded as (
    insert into user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
    select id, written.version, ${sql.lit(CHANGE_TYPES[type])}, changed, ${author}, moment from ${rows} order by id
  )`;
}
