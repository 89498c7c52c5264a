import { sql } from 'kysely';
import type { Engine, SendSql } from '../postgres/index.ts';

/**
 * PostgreSQL keeps no values of email, name and external id in the planner's statistics, where they would outlive their
 * user. Unique indexes give the planner what it needs. The statistics that exist stay: `infra/postgresql/erasure.md`
 * removes them. The index is of 1.1.0, and 1.2.0 does not use it.
 */
export async function erasure(send: SendSql, { isPostgres }: Engine): Promise<void> {
  await send(sql`drop index concurrently if exists users_email_unicode_idx`);
  if (!isPostgres) return;
  const columns = ['email', 'full_name', 'external_id'];
  const changes = columns.map((name) => sql`alter column ${sql.ref(name)} set statistics 0`);
  await send(sql`alter table users ${sql.join(changes)}`);
  // The index of external ids has statistics of its column only. A column of an index has a number instead of a name.
  await send(sql`alter index users_email_key alter column 1 set statistics 0`);
}
