import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FIGURES, type Figure, type Measured } from './measure.ts';

const FILE = join(import.meta.dirname, 'figures.json');

export const nodeMajor = Number(process.versions.node.split('.')[0]);

type Committed = { readonly node: number; readonly workloads: Measured };

export const readFigures = (): Committed => JSON.parse(readFileSync(FILE, 'utf8'));

/** Writes the figures to be committed: a line a workload. */
export function writeFigures(workloads: Measured): void {
  const lines = Object.entries(workloads).map(
    ([name, figures]) =>
      `    ${JSON.stringify(name)}: { ${Object.entries(figures)
        .map(([figure, value]) => `"${figure}": ${value}`)
        .join(', ')} }`,
  );
  writeFileSync(FILE, `{\n  "node": ${nodeMajor},\n  "workloads": {\n${lines.join(',\n')}\n  }\n}\n`);
}

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
