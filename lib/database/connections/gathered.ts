import type { ChurningSet } from '../../churning-set.ts';
import type { Row } from './row-reader.ts';
import { cancelled } from './way.ts';

/** Somebody who waits for the row of an id, which one statement answers together with those of others. */
export type Gathered = {
  readonly id: string;
  readonly until: number;
  readonly giveUp: () => void;
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

/** How many wait in all queues together. */
export function countAll(queues: Iterable<ChurningSet<Gathered>>): number {
  let count = 0;
  for (const { size } of queues) count += size;
  return count;
}

/** Nobody who waits is answered any more. */
export function cancelAll(waiting: ChurningSet<Gathered>): void {
  for (const { reject } of waiting) reject(cancelled());
  waiting.clear();
}
