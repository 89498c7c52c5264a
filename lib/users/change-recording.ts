import { type RawBuilder, sql } from 'kysely';
import type { ServicePrincipal } from '../auth/principal.ts';
import { currentRequest } from '../http/request-scope.ts';
import type { Engine } from '../postgres/index.ts';

/** The caller (`sub` of its token) and the request of a write, which its change records. */
export type Author = { readonly actor: string; readonly request_id: string };

/** The SQL types of an author. */
export const AUTHOR_TYPES = { actor: 'text', request_id: 'text' } as const;

/** The current request and its caller, as the author of a write. */
export function authorOf({ subject }: ServicePrincipal): Author {
  return { actor: subject, request_id: currentRequest()?.requestId ?? '' };
}

const CHANGE_TYPES = { created: 1, updated: 2, deleted: 3 } as const;

/**
 * The common table expression that records a change for each row of `written` (`id`, `version`, `changed`, `moment`),
 * in the same statement. Without an `author`, each row has one of its own, which `given` contains by the `id` of the row.
 * The rows are locked when they draw their numbers from the sequence. A number of at most `settled_before` shows that the
 * sequence was set back. On an engine that is serializable, writes must not read the head, because readers update it.
 */
export function recorded(
  { isPostgres }: Engine,
  type: keyof typeof CHANGE_TYPES,
  author?: Author,
): RawBuilder<unknown> {
  const rows = author ? sql`written` : sql`written join given using (id)`;
  const values = author
    ? sql`${author.actor}::text, ${author.request_id}::text`
    : sql`given.actor, given.request_id`;
  const settled = isPostgres
    ? sql`(select settled from user_changes_head order by position desc limit 1)`
    : sql`null::bigint`;
  return sql`recorded as (
    insert into user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time, settled_before)
    select id, written.version, ${sql.lit(CHANGE_TYPES[type])}, changed, ${values}, moment, ${settled} from ${rows} order by id
  )`;
}
