/** The values that these shares (0 to 1) of all values do not exceed; NaN if there are no values. */
export function percentiles(values: Iterable<number>, ...shares: readonly number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  return shares.map((share) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? NaN);
}

export const percentile = (values: Iterable<number>, share: number) =>
  percentiles(values, share)[0] as number;

/** The value in the middle, or the mean of the two in the middle; NaN if there are no values. */
export function medianOf(values: Iterable<number>): number {
  const sorted = Float64Array.from(values).sort();
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}

/** The least, the middle and the greatest of some values. */
export type Spread = { readonly min: number; readonly median: number; readonly max: number };

/** Of no values at all, undefined. */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return undefined;
  return { min: Math.min(...known), median: medianOf(known), max: Math.max(...known) };
}
