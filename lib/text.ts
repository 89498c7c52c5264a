import * as z from 'zod';

/** A text of `min` to `max` Unicode code points that PostgreSQL stores as it is. */
export function boundedText(min: number, max: number) {
  return z
    .string()
    .refine((text) => isWithin(min, max, text), `must have ${min} to ${max} characters`)
    .refine(isStorable, 'must have no U+0000 and no lone surrogate')
    .meta({ minLength: min, maxLength: max });
}

/** Whether PostgreSQL stores the text as it is: U+0000 it refuses, and a lone surrogate it would silently replace. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** A query parameter that holds a whole number in decimal digits; absent it is `fallback`. */
export function integerParameter(min: number, max: number, fallback: number) {
  return z
    .string()
    .refine((text) => /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: `must be a whole number from ${min} to ${max} in decimal digits`,
    })
    .transform(Number)
    .default(fallback)
    .meta({ override: { type: 'integer', minimum: min, maximum: max, default: fallback } });
}

/** Code units are never fewer than code points, so that most texts need no counting. */
function isWithin(min: number, max: number, text: string): boolean {
  if (text.length <= max) return text.length >= min;
  return text.length <= 2 * max && [...text].length <= max;
}
