import { type RawBuilder, sql } from 'kysely';
import { boundedText } from '../text.ts';

/** Either side of the @. White space is as in ECMAScript. The escapes have the same meaning in other engines. */
const PART = '[^@\\s\\u0000-\\u001f\\u007f-\\u009f\\ufeff]+';
const ADDRESS = new RegExp(`^${PART}@${PART}$`);

/** An address that a user may have. */
export const Email = boundedText(1, 255)
  .refine(
    (text) => ADDRESS.test(text),
    'must have exactly one @ with at least one character on each side, and no white space or control characters',
  )
  .meta({
    pattern: ADDRESS.source,
    description:
      'Exactly one @ with at least one character on each side, and no white space or control characters. Unique ' +
      'without regard to case. Stored and returned as given.',
    example: 'ada@example.com',
  });

/**
 * An email in the form of the unique index, without regard to case. Only the collation of the column knows which texts
 * are one address. The empty selection applies this collation to the value.
 */
export function foldedEmail(value: unknown): RawBuilder<string> {
  return sql`lower(upper(coalesce((select email from users where false), ${value})))`;
}
