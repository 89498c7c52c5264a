import { type RawBuilder, sql } from 'kysely';
import type { Fingerprint } from '../../idempotency/fingerprint.ts';
import { claimed } from '../../idempotency/key-table.ts';
import type { Statements } from '../../postgres/index.ts';
import { type Author, recorded } from '../change-recording.ts';
import { foldedEmail } from '../email.ts';
import { type CreatedName, createdFields } from '../fields.ts';
import { hasValue } from '../taken-values.ts';
import type { User, UserCreate } from '../user.ts';
import { newUserId } from '../user-id.ts';
import { insertedNames, insertedValues, insertUsers, writeReturning } from '../user-statements.ts';

/** The items of a batch, one list per member; null if no item has a value. An item with refused values has no email. */
type Items = { readonly id: readonly string[] } & {
  readonly [Name in CreatedName]: readonly (UserCreate[Name] | null)[] | null;
};

/** The values of an insert. It has a fingerprint if the request has a key. */
export type BatchInsert = Items & Author & Partial<Fingerprint>;

const hasEmail = hasValue.email(sql.ref('item.email'));

/** The items that a partial batch stores. They are known before the first one is stored. */
const FREE_ITEMS = {
  // If two items have one address, the first one wins.
  byEmail: sql`select distinct on (folded) * from item
    where email is not null and not exists (select from users where ${hasEmail})
    order by folded, position`,
  // 1. candidate: the items whose values no user has, numbered in their order. 2. decided: begins with a row 0, without an
  //    item and without values. Each further row decides the next candidate: it is free if its values are not among those
  //    of the free ones before it, and then adds its own. An item conflicts with a later one only if it is stored.
  // 3. The free candidates.
  byAllValues: sql`with recursive candidate as materialized (
      select *, row_number() over (order by position) as number from item
      where email is not null and not exists (select from users where ${hasEmail})
        and not exists (select from users where ${hasValue.external_id(sql.ref('item.external_id'))})
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
};

/** One entry per item: null for an item that is not stored. */
const idsOfFree = sql`select array_agg(free.id order by item.position) from item left join free using (position)`;

/**
 * The statements that store the items of a batch: all of them, or those that are free. Without external ids, fewer steps
 * find the free items. The order of the addresses prevents two batches from waiting for each other. With a key, no row means that
 * the key is known.
 */
export function batchInserts(statements: Statements, isKeyed: boolean) {
  const prepare = (free?: RawBuilder<unknown>) => {
    const write = (given: BatchInsert) => {
      const sent = sql`unnest(${insertedValues(given, '[]')}) with ordinality as sent (${insertedNames}, position)`;
      const before = [
        sql`item as materialized (select *, ${foldedEmail(sql.ref('email'))} as folded from ${sent})`,
      ];
      if (free) before.push(sql`free as materialized (${free})`);
      const ids = free ? idsOfFree : sql`select ${given.id}::uuid[]`;
      if (isKeyed) before.push(claimed(given as BatchInsert & Fingerprint, ids));
      const rows = sql.raw(`${free ? 'free' : 'item'} as source${isKeyed ? ', claimed' : ''}`);
      const insert = insertUsers('source', sql`${rows}`, sql`order by source.folded`);
      return writeReturning(before, insert, recorded(statements.engine, 'created', given), { isKeyed });
    };
    return statements.ownSessionWrite<BatchInsert, User | { readonly id: null }>('INSERT users', write, {
      limitsLockWaits: isKeyed,
    });
  };
  return {
    all: prepare(),
    freeByEmail: prepare(FREE_ITEMS.byEmail),
    freeByAllValues: prepare(FREE_ITEMS.byAllValues),
  };
}

/**
 * The items of these users, with new ids. The ids grow in each process, also while the clock is set back (RFC 9562 section
 * 6.2, method 1), and therefore order the users of a batch. A list without a value is null, because `unnest` fills up the
 * columns of short lists with null. A batch of 100 without full names and external ids sends 6,213 instead of 7,215 bytes.
 */
export function itemsIn(users: readonly (UserCreate | undefined)[]): Items {
  const lists = createdFields.map(({ name }) => {
    const values = users.map((user) => user?.[name] ?? null);
    return [name, values.some((value) => value !== null) ? values : null];
  });
  return { id: users.map(() => newUserId()), ...Object.fromEntries(lists) };
}
