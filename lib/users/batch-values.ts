import { type RawBuilder, sql } from 'kysely';
import type { Author } from '../changes/recording.ts';

/** The types of the values that an item of a statement may have. */
const TYPES = {
  id: 'uuid',
  email: 'text',
  full_name: 'text',
  sets_full_name: 'boolean',
  is_active: 'boolean',
  among: 'text',
  except: 'text',
  actor: 'text',
  request_id: 'text',
} as const;

type Name = keyof typeof TYPES;

/**
 * The values of an item, each as a list of one. A batch of writes has one list per value, with an entry for each item
 * (`postgres/batching/batcher.ts`).
 */
export type BatchItemOf<Values> = { readonly [Name in keyof Values]: readonly [Values[Name]] };

/** Each value as a list of one. */
export function toBatchItem<Values extends object>(values: Values): BatchItemOf<Values> {
  const item: Record<string, readonly [unknown]> = {};
  for (const name in values) item[name] = [values[name]];
  return item as BatchItemOf<Values>;
}

/** The common table expression `given`: the items with these values and their authors. */
export function batchValues<Values extends Author>(
  item: BatchItemOf<Values>,
  names: readonly (Name & keyof Values)[],
): RawBuilder<unknown> {
  const all: readonly (Name & keyof Values)[] = [...names, 'actor', 'request_id'];
  const lists = sql.join(all.map((name) => sql`${item[name]}::${sql.raw(TYPES[name])}[]`));
  const rows = sql`unnest(${lists}) as given (${sql.join(all.map((name) => sql.ref(name)))})`;
  return sql`given as materialized (select * from ${rows})`;
}
