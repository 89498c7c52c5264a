import { type RawBuilder, sql } from 'kysely';
import type { ServicePrincipal } from '../auth/principal.ts';
import { currentRequest } from '../http/request-scope.ts';
import { type Engine, isInSchema } from '../postgres/index.ts';

/** The caller (`sub` of its token) and the request of a write, which its change records. */
export type Author = { readonly actor: string; readonly request_id: string };

export const AUTHOR_TYPES = { actor: 'text', request_id: 'text' } as const;

export function authorOf({ subject }: ServicePrincipal): Author {
  return { actor: subject, request_id: currentRequest()?.requestId ?? '' };
}

/** The types of changes. A stored change has the place of its type, counted from 1: it never shifts. */
export const CHANGE_TYPES = ['created', 'updated', 'deleted'] as const;

/**
 * The common table expression that records a change for each row of `written` (`id`, `version`, `changed`, `moment`),
 * in the same statement. Without an `author`, each row has one of its own: a created one in `given`, any other in `written`.
 * The rows are locked when they draw their numbers from the sequence. A number of at most `settled_before` shows that the
 * sequence was set back. On an engine that is serializable, writes must not read the head, because readers update it.
 */
export function recorded(
  { isPostgres }: Engine,
  type: (typeof CHANGE_TYPES)[number],
  author?: Author,
): RawBuilder<unknown> {
  // An insert returns columns of its table only.
  const isJoined = !author && type === 'created';
  const own = author || isJoined ? sql`` : sql`, actor, request_id`;
  const values = author ? sql`${author.actor}::text, ${author.request_id}::text` : sql`actor, request_id`;
  const settled = isPostgres
    ? sql`(select settled from user_changes_head order by position desc limit 1)`
    : sql`null::bigint`;
  return sql`drawn as materialized (
    select nextval('user_changes_unnumbered_sequence_seq') as sequence, ${randomInteger} as identity,
      id, version, changed, moment${own}
    from (select id, version, changed, moment${own} from written order by id) as written
  ), recorded as (
    insert into user_changes_unnumbered
      (sequence, identity, user_id, version, type, changed, actor, request_id, time, settled_before)
      overriding system value
    select sequence, identity, id, drawn.version, ${sql.lit(CHANGE_TYPES.indexOf(type) + 1)}, changed, ${values}, moment, ${settled}
    from drawn ${isJoined ? sql`join given using (id)` : sql``} where ${isInSchema}
  )`;
}

/** The default of the column. Citus evaluates no default, and no such function, in an insert that it sends to a worker. */
const randomInteger = sql`(random() * 4294967295 - 2147483648)::integer`;
