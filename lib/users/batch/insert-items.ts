import { type RawBuilder, sql } from 'kysely';
import { type Author, recorded } from '../../changes/recording.ts';
import { claimed } from '../../idempotency/claim.ts';
import type { Fingerprint } from '../../idempotency/fingerprint.ts';
import type { Run } from '../../postgres/index.ts';
import type { CreatedName } from '../fields.ts';
import { foldedEmail } from '../folded-email.ts';
import { insertedNames, insertedValues, insertUsers } from '../insert-users.ts';
import type { UserCreate } from '../user.ts';
import type { WriteContext } from '../write-context.ts';
import { type WrittenRow, writeReturning } from '../write-returning.ts';

/** The items of a batch, one list per member. An item with refused values has no email. */
export type Items = { readonly id: readonly string[] } & {
  readonly [Name in CreatedName]: readonly (UserCreate[Name] | null)[];
};

/** Stores items by one statement. */
export type InsertItems = Run<Items & Author & Partial<Fingerprint>, WrittenRow>;

type Given = Items & Author & Fingerprint;
/** The source of the rows, and the ids that will be stored, one entry per item. */
type Source = {
  readonly before: readonly RawBuilder<unknown>[];
  readonly rows: RawBuilder<unknown>;
  readonly ids: RawBuilder<unknown>;
};

/** How the items that are stored are found. Without external ids, fewer steps find those of a partial batch. */
export type Selection = 'all' | 'free_emails' | 'free_values';

const SOURCES: Readonly<Record<Selection, (given: Given) => Source>> = {
  all: (given) => ({
    before: [itemsOf(given)],
    rows: sql`item`,
    ids: sql`${given.id}::uuid[]`,
  }),
  free_emails: (given) =>
    freeItems(
      given,
      // If two items have one address, the first one wins.
      sql`select distinct on (folded) * from item
        where email is not null and not exists (select from users where lower(upper(users.email)) = item.folded)
        order by folded, position`,
    ),
  free_values: (given) =>
    freeItems(
      given,
      // Items are decided in their order. An item conflicts with a later one only if it is stored.
      sql`with recursive candidate as materialized (
          select *, row_number() over (order by position) as number from item
          where email is not null and not exists (select from users where lower(upper(users.email)) = item.folded)
            and not exists (select from users where users.external_id = item.external_id)
        ), decided (number, emails, external_ids, is_free) as (
          select 0::bigint, array(select folded from item where false),
            array(select external_id from item where false), false
          union all
          select candidate.number,
            case when verdict.is_free then emails || folded else emails end,
            case when verdict.is_free and external_id is not null then external_ids || external_id else external_ids end,
            verdict.is_free
          from decided join candidate on candidate.number = decided.number + 1
          cross join lateral (
            select folded <> all(emails) and (external_id is null or external_id <> all(external_ids)) as is_free
          ) as verdict
        )
        select candidate.* from candidate join decided using (number) where is_free`,
    ),
};

/** The free items are known before the first one is stored. */
function freeItems(given: Given, select: RawBuilder<unknown>): Source {
  return {
    before: [itemsOf(given), sql`free as materialized (${select})`],
    rows: sql`free`,
    ids: sql`(select array_agg(free.id order by item.position) from item left join free using (position))`,
  };
}

/** The statement that stores these items. The order of the addresses prevents two batches from waiting for each other. */
export function insertingItems(
  { statements }: WriteContext,
  selection: Selection,
  { isKeyed }: { readonly isKeyed: boolean },
): InsertItems {
  const insert = statements.single<Given, WrittenRow>('INSERT users', (given) => {
    const { before, rows, ids } = SOURCES[selection](given);
    const source = isKeyed ? sql`${rows} as source, claimed` : sql`${rows} as source`;
    return writeReturning(insertUsers('source', sql`${source} order by source.folded`), {
      before: isKeyed ? [...before, claimed(given, ids, statements)] : before,
      record: recorded('created', given),
      isKeyed,
    });
  }) as InsertItems;
  return (given) => insert(withoutNullLists(given));
}

/** Null for a list that has no value, to send less: `unnest` fills up the columns of short lists with null. */
function withoutNullLists<Values extends object>(given: Values): Values {
  const isEmpty = (value: unknown) => Array.isArray(value) && value.every((one) => one === null);
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, isEmpty(value) ? null : value]),
  ) as Values;
}

function itemsOf(given: Items): RawBuilder<unknown> {
  return sql`item as materialized (
    select *, ${foldedEmail(sql.ref('email'))} as folded
    from unnest(${insertedValues(given, '[]')}) with ordinality as sent (${insertedNames}, position)
  )`;
}
