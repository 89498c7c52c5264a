import { type RawBuilder, sql } from 'kysely';
import { boundedText } from '../text.ts';

/** White space beyond ASCII, as in ECMAScript. In other engines `\s` may stand for less, and the escapes mean the same. */
const WHITE_SPACE = '\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff';
/** Either side of the @. */
const PART = `[^@\\u0000-\\u0020\\u007f-\\u009f${WHITE_SPACE}]+`;
const ADDRESS = new RegExp(`^${PART}@${PART}$`);

export const Email = boundedText(1, 255)
  .refine(
    (text) => ADDRESS.test(text),
    'must have exactly one @ with at least one character on each side, and no white space or control characters',
  )
  .meta({
    pattern: ADDRESS.source,
    description:
      'Exactly one @ with at least one character on each side, and no white space or control characters. Unique ' +
      'without regard to the case of the letters A to Z. Stored and returned as given.',
    example: 'grace@example.com',
  });

/**
 * An email with a to z in place of A to Z. Two addresses are the same if these texts are equal. Every other character is
 * compared exactly, whatever the version and the locale of PostgreSQL.
 */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The same in SQL. For the column `email`, it is the expression of the unique index. */
export function foldedEmail(value: unknown): RawBuilder<string> {
  return sql`lower(${value} collate "C")`;
}
