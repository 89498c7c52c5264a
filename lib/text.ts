import * as z from 'zod';

/**
 * Maximum number of characters in a header value or a request target: Node's parser answers a larger head with 431
 * (`maxHeaderSize`, 16 KiB).
 */
export const MAX_HEAD_LENGTH = 16_384;

/**
 * A pattern for any text without U+0000. JSON Schema cannot exclude lone surrogates for engines that count code units.
 */
export const NO_NUL_PATTERN = '^[^\\u0000]*$';

/** A UUID as a part of a pattern. `\d` would stand for more than ASCII digits in some engines. */
export const UUID_PATTERN = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';

/** A UUID of any version, in a response. */
export const Uuid = z
  .guid()
  .meta({ format: 'uuid', minLength: 36, maxLength: 36, pattern: `^${UUID_PATTERN}$` });

/** A time in UTC with milliseconds and `Z`, in a response. */
export const Timestamp = z.iso.datetime({ precision: 3 }).length(24);

/** A text of `min` to `max` Unicode code points that PostgreSQL stores as it is. */
export function boundedText(min: number, max: number) {
  // A text never has fewer code units than code points, so most texts need no counting.
  const isWithin = (text: string) =>
    text.length <= max ? text.length >= min : text.length <= 2 * max && [...text].length <= max;
  return z
    .string()
    .refine(isWithin, `must have ${min} to ${max} characters`)
    .refine(isStorable, 'must have no U+0000 and no lone surrogate')
    .meta({ minLength: min, maxLength: max, pattern: NO_NUL_PATTERN });
}

/** Whether PostgreSQL stores the text as it is. It refuses U+0000, and would silently replace a lone surrogate. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}
