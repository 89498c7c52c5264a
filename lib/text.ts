import * as z from 'zod';

/** A text of `least` to `most` Unicode code points that PostgreSQL stores as it is. */
export function boundedText(least: number, most: number) {
  return z
    .string()
    .refine((text) => isWithin(least, most, text), `must have ${least} to ${most} characters`)
    .refine(isStorable, 'must have no U+0000 and no lone surrogate')
    .meta({ minLength: least, maxLength: most });
}

/** Whether PostgreSQL stores the text as it is: U+0000 it refuses, and a lone surrogate it would silently replace. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** A query parameter that holds a whole number in decimal digits; absent it is `fallback`. */
export function integerParameter(least: number, most: number, fallback: number) {
  return z
    .string()
    .refine((text) => /^\d+$/.test(text) && Number(text) >= least && Number(text) <= most, {
      error: `must be a whole number from ${least} to ${most} in decimal digits`,
    })
    .transform(Number)
    .default(fallback)
    .meta({ override: { type: 'integer', minimum: least, maximum: most, default: fallback } });
}

/** Code units are never fewer than code points, so that most texts need no counting. */
function isWithin(least: number, most: number, text: string): boolean {
  if (text.length <= most) return text.length >= least;
  return text.length <= 2 * most && [...text].length <= most;
}
