import * as z from 'zod';

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

/** A space is usually a mistake: in a query, `+` means a space. */
export function withHint(rule: string) {
  return ({ input }: { readonly input: unknown }) =>
    String(input).includes(' ') ? `${rule}; write + as %2B` : rule;
}
