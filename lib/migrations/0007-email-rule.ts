import { sql } from 'kysely';
import { createIndexConcurrently, replaceIndexConcurrently, type SendSql } from '../postgres/index.ts';

/** Maximum number of ids that the fault names. */
const MAX_IDS = 100;

const FOLDED = sql`lower(email collate "C")`;

/**
 * Emails that are equal but for the case of A to Z are the same, whatever the locale and the version of PostgreSQL. The
 * unique index of earlier versions was one on `lower(upper(email))`, in the collation of the column.
 */
export async function emailRule(send: SendSql): Promise<void> {
  await replaceIndexConcurrently(send, {
    name: 'users_email_key',
    on: sql`users (${FOLDED})`,
    isReplaced: '%lower((email COLLATE "C"))%',
    prepare: async () => {
      await refuseEqualEmails(send);
      // Instances of 1.1.0 look addresses up by this expression. The next version drops the index.
      await createIndexConcurrently(send, {
        name: 'users_email_unicode_idx',
        on: sql`users (lower(upper(email)))`,
      });
    },
  });
  // Builds between 1.1.0 and 1.2.0 made this index without the collation.
  await replaceIndexConcurrently(send, {
    name: 'users_external_id_key',
    on: sql`users (external_id collate "C") where external_id is not null`,
    isReplaced: '%external_id COLLATE "C"%',
  });
}

/** Only under a Turkish locale could two users have emails that are now the same. The fault has no email. */
async function refuseEqualEmails(send: SendSql): Promise<void> {
  const found = await send(sql<{ id: string }>`
    select unnest(array_agg(id order by id)) as id from users group by ${FOLDED} having count(*) > 1
  `);
  if (found.length === 0) return;
  const ids = found.slice(0, MAX_IDS).map(({ id }) => id);
  throw new Error(
    `${found.length} users have emails that differ only in the case of A to Z; change or delete all but one of each: ${ids.join(', ')}`,
  );
}
