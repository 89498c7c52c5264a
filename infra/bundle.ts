import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const STATIC_IMPORT = /(?:\bfrom|\bimport)\s*"(\.[^"]+\.mjs)"/g;

/** The size in bytes of what Node loads for a bundle's main file: that and all that it imports, not what it may import. */
export function sizeLoaded(file: string): number {
  return [...withImports(file)].reduce((sum, loaded) => sum + statSync(loaded).size, 0);
}

function withImports(file: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, imported = ''] of readFileSync(file, 'utf8').matchAll(STATIC_IMPORT)) {
    withImports(join(dirname(file), imported), found);
  }
  return found;
}
