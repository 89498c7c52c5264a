import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measured } from './compare.ts';

const FILE = join(import.meta.dirname, 'figures.json');

/** The major version of Node that runs this. */
export const nodeMajor = Number(process.versions.node.split('.')[0]);

type Committed = { readonly node: number; readonly workloads: Measured };

/** The figures that are committed, and the Node they are of. */
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
