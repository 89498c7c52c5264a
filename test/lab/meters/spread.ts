import { medianOf } from './percentile.ts';

/** The least, the middle and the greatest of some values. */
export type Spread = { readonly min: number; readonly median: number; readonly max: number };

/** Of no values at all, undefined. */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return undefined;
  return { min: Math.min(...known), median: medianOf(known), max: Math.max(...known) };
}
