/** The values that these shares (0 to 1) of all values do not exceed; NaN if there are no values. */
export function percentiles(values: Iterable<number>, ...shares: readonly number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  return shares.map((share) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? NaN);
}

/** One of `percentiles`. */
export const percentile = (values: Iterable<number>, share: number) =>
  percentiles(values, share)[0] as number;

/** The value in the middle, or the mean of the two in the middle; NaN if there are no values. */
export function medianOf(values: Iterable<number>): number {
  const sorted = Float64Array.from(values).sort();
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}
