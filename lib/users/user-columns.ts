import { sql } from 'kysely';

/** A user as it is read. Times are numbers: their text depends on what roles, databases and poolers set for a session. */
export const userColumns = [
  'id',
  'email',
  'full_name',
  'is_active',
  milliseconds('created_at').as('created_at'),
  milliseconds('updated_at').as('updated_at'),
  'version',
] as const;

/** Since 1970, as text: PostgreSQL's bigint. */
function milliseconds(column: 'created_at' | 'updated_at') {
  return sql<string>`(extract(epoch from ${sql.ref(`users.${column}`)}) * 1000)::bigint`;
}
