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

/** A request ID: 1 to 128 characters of visible ASCII. */
export const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** The form of a request ID, for the documentation. */
export const REQUEST_ID_FORM = { minLength: 1, maxLength: 128, pattern: REQUEST_ID.source };

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

/** An optional query parameter whose text `isAllowed` accepts. `meta` is for the documentation. */
export function textParameter(
  isAllowed: (text: string) => boolean,
  rule: string | ((issue: { readonly input: unknown }) => string),
  meta: z.GlobalMeta,
) {
  return z.string().refine(isAllowed, { error: rule }).optional().meta(meta);
}

/** A query parameter with an integer in decimal digits. If it is absent, the value is `fallback`. */
export function integerParameter(min: number, max: number, fallback: number) {
  return z
    .string()
    .refine((text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: `must be an integer from ${min} to ${max}, in decimal digits`,
    })
    .transform(Number)
    .default(fallback)
    .meta({ override: { type: 'integer', format: 'int32', minimum: min, maximum: max, default: fallback } });
}

/** The query of a link, with these values. Undefined ones are left out. */
export function queryWith(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return String(query);
}
