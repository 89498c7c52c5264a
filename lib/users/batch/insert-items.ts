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
import type { UserBatch } from './user-batch.ts';

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

/** All items (`atomic`), or those whose address is free (`partial`), which is known before the first item is stored. */
const SOURCES: Readonly<Record<UserBatch['mode'], (given: Given) => Source>> = {
  atomic: (given) => ({
    before: [itemsOf(given)],
    rows: sql`item`,
    ids: sql`${given.id}::uuid[]`,
  }),
  partial: (given) => ({
    // If two items have one address, the first one wins.
    before: [
      itemsOf(given),
      sql`free as materialized (
        select distinct on (folded) * from item
        where email is not null and not exists (select from users where lower(upper(users.email)) = item.folded)
        order by folded, position
      )`,
    ],
    rows: sql`free`,
    ids: sql`(select array_agg(free.id order by item.position) from item left join free using (position))`,
  }),
};

/** The statement for this mode. The order of the addresses prevents two batches from waiting for each other. */
export function insertingItems(
  { statements }: WriteContext,
  mode: UserBatch['mode'],
  { isKeyed }: { readonly isKeyed: boolean },
): InsertItems {
  return statements.single<Given, WrittenRow>('INSERT users', (given) => {
    const { before, rows, ids } = SOURCES[mode](given);
    const source = isKeyed ? sql`${rows} as source, claimed` : sql`${rows} as source`;
    return writeReturning(insertUsers('source', sql`${source} order by source.folded`), {
      before: isKeyed ? [...before, claimed(given, ids, statements)] : before,
      record: recorded('created', given),
      isKeyed,
    });
  }) as InsertItems;
}

function itemsOf(given: Items): RawBuilder<unknown> {
  return sql`item as materialized (
    select *, ${foldedEmail(sql.ref('email'))} as folded
    from unnest(${insertedValues(given, '[]')}) with ordinality as sent (${insertedNames}, position)
  )`;
}
