import { type RawBuilder, sql } from 'kysely';

/**
 * An email as the unique index keeps it, without regard to case. The collation of the column alone knows what is one
 * address: the empty selection lends it to the value.
 */
export function foldedEmail(value: unknown): RawBuilder<string> {
  return sql`lower(upper(coalesce((select email from users where false), ${value})))`;
}
