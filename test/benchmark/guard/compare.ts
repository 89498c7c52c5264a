import { FIGURES, type Figure, type Figures } from './measure.ts';

/** The figures of each workload, by its name. */
export type Measured = Readonly<Record<string, Figures>>;

/** A figure may grow by so much before the guard tells. */
const TOLERANCE = 1.1;

/** What V8 counts: it may be other for other versions of Node. */
const OF_V8: readonly Figure[] = ['promises', 'bytesAllocated'];

type Options = { readonly isSameNode: boolean };

/** A sentence for each figure that has grown by more than a tenth: workload, figure, before and now. */
export function growthOf(before: Measured, now: Measured, { isSameNode }: Options): readonly string[] {
  const figures = FIGURES.filter((figure) => isSameNode || !OF_V8.includes(figure));
  return Object.entries(now).flatMap(([workload, measured]) => {
    const known = before[workload];
    if (!known) return [`${workload} is new`];
    return figures
      .filter((figure) => measured[figure] > known[figure] * TOLERANCE)
      .map((figure) => `${workload}: ${figure} was ${known[figure]}, is ${measured[figure]}`);
  });
}
