import { type RawBuilder, sql } from 'kysely';
import type { SendSql } from '../postgres/index.ts';
import { createIndexConcurrently } from './concurrent-index.ts';

const MAX_IDS = 100;

const FOLDED = sql`lower(email collate "C")`;

/**
 * Emails that are equal but for the case of A to Z are the same, whatever the locale and the version of PostgreSQL. The
 * unique index of earlier versions was one on `lower(upper(email))`, in the collation of the column. Builds between 1.1.0
 * and 1.2.0 made the index of external ids without a collation.
 */
export async function emailRule(send: SendSql): Promise<void> {
  await replaceIndex(send, 'users_email_key', sql`(${FOLDED})`, async () => {
    await refuseEqualEmails(send);
    // Instances of 1.1.0 look emails up by this expression. The next version drops the index.
    const on = sql`(lower(upper(email)))`;
    await createIndexConcurrently(send, { name: 'users_email_unicode_idx', table: 'users', on });
    // PostgreSQL knows of a unique index that it finds one row. Of this one it knows so from statistics alone.
    await send(sql`analyze users`);
  });
  const on = sql`(external_id collate "C") where external_id is not null`;
  await replaceIndex(send, 'users_external_id_key', on);
}

/**
 * Replaces a unique index by one with the collation "C", while the table is read and written. Until the new index takes
 * the name, it has the suffix that `reindex concurrently` uses, which instances of 1.1.0 know.
 */
async function replaceIndex(
  send: SendSql,
  name: string,
  on: RawBuilder<unknown>,
  prepare = async () => {},
): Promise<void> {
  const [next, previous] = [`${name}_ccnew`, `${name}_ccold`];
  const isOld = sql`pg_get_indexdef(to_regclass(${sql.lit(name)})) not like '%COLLATE "C"%'`;
  while ((await send(sql`select where ${isOld}`)).length > 0) {
    await prepare();
    await createIndexConcurrently(send, { name: next, isUnique: true, table: 'users', on });
    // Another run may have been faster.
    await send(sql`do $$ begin
      if ${isOld} and to_regclass(${sql.lit(next)}) is not null then
        alter index ${sql.id(name)} rename to ${sql.id(previous)};
        alter index ${sql.id(next)} rename to ${sql.id(name)};
      end if;
    end $$`);
  }
  for (const left of [previous, next]) await send(sql`drop index concurrently if exists ${sql.id(left)}`);
}

/** Only under a Turkish locale could two users have emails that are now the same. The fault has no email. */
async function refuseEqualEmails(send: SendSql): Promise<void> {
  const found = await send(sql<{ id: string }>`
    select unnest(array_agg(id order by id)) as id from users group by ${FOLDED} having count(*) > 1
  `);
  if (found.length === 0) return;
  // An attempt that such emails ended left an invalid index, which refuses values, too.
  await send(sql`drop index concurrently if exists users_email_key_ccnew`);
  const ids = found.slice(0, MAX_IDS).map(({ id }) => id);
  throw new Error(
    `${found.length} users have emails that differ only in the case of A to Z; change or delete all but one of each: ${ids.join(', ')}`,
  );
}
