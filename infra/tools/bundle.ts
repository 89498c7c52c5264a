import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const STATIC_IMPORT = /(?:\bfrom|\bimport)\s*"(\.[^"]+\.mjs)"/g;

/**
 * Size in bytes of the code that Node loads for the main file of a bundle: the file and its static imports, without
 * dynamic ones.
 */
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
