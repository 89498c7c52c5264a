import type { Row } from './row-reader.ts';

/** Somebody who waits for the row of an id, which one statement answers together with those of others. */
export type Gathered = {
  readonly id: string;
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (reason: unknown) => void;
};

/** Tells each the row of its id, or that there is none. */
export function tellRows(group: readonly Gathered[], rows: readonly Row[]): void {
  const rowOf = new Map(rows.map((row) => [row.id, row]));
  for (const { id, resolve } of group) {
    const row = rowOf.get(id);
    resolve(row ? [row] : []);
  }
}

/** Tells each why it is not answered. */
export function rejectAll(group: Iterable<Gathered>, reason: unknown): void {
  for (const { reject } of group) reject(reason);
}
