import { type RawBuilder, sql } from 'kysely';
import { type Author, recorded } from '../../changes/recording.ts';
import type { Fingerprint } from '../../idempotency/fingerprint.ts';
import { claimed } from '../../idempotency/key-table.ts';
import type { Statements } from '../../postgres/index.ts';
import { foldedEmail } from '../email.ts';
import { type CreatedName, createdFields } from '../fields.ts';
import type { UserCreate } from '../user.ts';
import { newUserId } from '../user-id.ts';
import { insertedNames, insertedValues, insertUsers, type UserRow, writeReturning } from '../user-row.ts';
import type { UserBatch } from './user-batch.ts';

/** The items of a batch, one list per member. An item with refused values has no email. */
export type Items = { readonly id: readonly string[] } & {
  readonly [Name in CreatedName]: readonly (UserCreate[Name] | null)[];
};

type BatchInsert = Items & Author & Fingerprint;

/** The source of the rows, and the ids that will be stored, one entry per item. */
type Source = {
  readonly before: readonly RawBuilder<unknown>[];
  readonly rows: RawBuilder<unknown>;
  readonly ids: RawBuilder<unknown>;
};

/** The items that are stored. Without external ids, fewer steps find those of a partial batch. */
const SOURCES = {
  all: (given: BatchInsert): Source => ({
    before: [itemsOf(given)],
    rows: sql`item`,
    ids: sql`${given.id}::uuid[]`,
  }),
  free_emails: (given: BatchInsert) =>
    freeItems(
      given,
      // If two items have one address, the first one wins.
      sql`select distinct on (folded) * from item
        where email is not null and not exists (select from users where lower(upper(users.email)) = item.folded)
        order by folded, position`,
    ),
  free_values: (given: BatchInsert) =>
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
function freeItems(given: BatchInsert, select: RawBuilder<unknown>): Source {
  return {
    before: [itemsOf(given), sql`free as materialized (${select})`],
    rows: sql`free`,
    ids: sql`(select array_agg(free.id order by item.position) from item left join free using (position))`,
  };
}

/**
 * Stores the items of a batch by one statement. The order of the addresses prevents two batches from waiting for each
 * other. With a fingerprint, no row means that the key is known.
 */
export function insertingItems(statements: Statements) {
  const prepare = (selection: keyof typeof SOURCES, isKeyed: boolean) =>
    statements.single<BatchInsert, UserRow | { readonly id: null }>('INSERT users', (given) => {
      const { before, rows, ids } = SOURCES[selection](given);
      const source = isKeyed ? sql`${rows} as source, claimed` : sql`${rows} as source`;
      return writeReturning(insertUsers('source', sql`${source} order by source.folded`), {
        before: isKeyed ? [...before, claimed(given, ids, statements)] : before,
        record: recorded('created', given),
        isKeyed,
      });
    });
  const prepareAll = (isKeyed: boolean) => ({
    all: prepare('all', isKeyed),
    free_emails: prepare('free_emails', isKeyed),
    free_values: prepare('free_values', isKeyed),
  });
  const [plain, keyed] = [prepareAll(false), prepareAll(true)];

  return function insertItems(mode: UserBatch['mode'], given: Items & Author & Partial<Fingerprint>) {
    const hasExternalIds = given.external_id.some((value) => value !== null);
    const selection = mode === 'atomic' ? 'all' : hasExternalIds ? 'free_values' : 'free_emails';
    return (given.key ? keyed : plain)[selection](withoutNullLists(given) as BatchInsert);
  };
}

/** The items of these users, with new ids. The ids grow, and therefore order the users of a batch. */
export function itemsIn(users: readonly (UserCreate | undefined)[]): Items {
  const lists = createdFields.map(({ name }) => [name, users.map((user) => user?.[name] ?? null)]);
  return { id: users.map(() => newUserId()), ...Object.fromEntries(lists) };
}

/** Null for a list that has no value, to send less: `unnest` fills up the columns of short lists with null. */
function withoutNullLists(given: object): object {
  const isEmpty = (value: unknown) => Array.isArray(value) && value.every((one) => one === null);
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, isEmpty(value) ? null : value]),
  );
}

function itemsOf(given: Items): RawBuilder<unknown> {
  return sql`item as materialized (
    select *, ${foldedEmail(sql.ref('email'))} as folded
    from unnest(${insertedValues(given, '[]')}) with ordinality as sent (${insertedNames}, position)
  )`;
}
