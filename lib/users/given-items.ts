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

/** The values of an item, each as a list of one: gathered with others it is one of many (`database/gathered-writes.ts`). */
export type ItemOf<Values> = { readonly [Name in keyof Values]: readonly [Values[Name]] };

/** Where a statement finds its items: as the table `given`. */
export type GivenItems = {
  /** Common table expressions that have to stand before. */
  readonly before: readonly RawBuilder<unknown>[];
  readonly from: RawBuilder<unknown>;
};

/** The values as a list of one each. */
export function asItem<Values extends object>(values: Values): ItemOf<Values> {
  const item: Record<string, readonly [unknown]> = {};
  for (const name in values) item[name] = [values[name]];
  return item as ItemOf<Values>;
}

/** The items with these values; with their authors where changes are recorded. */
export function givenItems<Values extends Author>(
  item: ItemOf<Values>,
  names: readonly (Name & keyof Values)[],
  { recordsChanges }: { readonly recordsChanges: boolean },
): GivenItems {
  const all: readonly (Name & keyof Values)[] = recordsChanges ? [...names, 'actor', 'request_id'] : names;
  const lists = sql.join(all.map((name) => sql`${item[name]}::${sql.raw(TYPES[name])}[]`));
  const rows = sql`unnest(${lists}) as given (${sql.join(all.map((name) => sql.ref(name)))})`;
  if (!recordsChanges) return { before: [], from: rows };
  return { before: [sql`given as materialized (select * from ${rows})`], from: sql`given` };
}
