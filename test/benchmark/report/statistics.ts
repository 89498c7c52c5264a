/** The least, the middle and the greatest of some values. */
export type Spread = { readonly min: number; readonly median: number; readonly max: number };

/** Of no values at all, undefined. */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  const [min, max] = [sorted[0], sorted.at(-1)];
  if (min === undefined || max === undefined) return undefined;
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] as number;
  const high = sorted[Math.floor(middle)] as number;
  return { min, median: (low + high) / 2, max };
}
