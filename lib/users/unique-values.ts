import { type RawBuilder, sql } from 'kysely';
import { foldedEmail } from './email.ts';
import type { UniqueName } from './fields.ts';

/** Conditions for a row of `users` to have a value, by the unique indexes. */
export const hasValue = {
  email: (value) => sql`${foldedEmail(sql.ref('users.email'))} = ${foldedEmail(value)}`,
  external_id: (value) => sql`users.external_id collate "C" = ${value}`,
} as const satisfies Record<UniqueName, (value: RawBuilder<unknown>) => RawBuilder<unknown>>;
