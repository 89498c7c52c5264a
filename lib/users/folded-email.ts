import { type RawBuilder, sql } from 'kysely';

/**
 * An email in the form of the unique index, without regard to case. Only the collation of the column knows which texts
 * are one address. The empty selection applies this collation to the value.
 */
export function foldedEmail(value: unknown): RawBuilder<string> {
  return sql`lower(upper(coalesce((select email from users where false), ${value})))`;
}
