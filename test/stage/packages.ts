import { existsSync, readFileSync } from 'node:fs';

/** The packages in a built file, according to its source map. The first file of a program has none. */
export function packagesIn(file: string): readonly string[] {
  if (!existsSync(`${file}.map`)) return [];
  const { sources } = JSON.parse(readFileSync(`${file}.map`, 'utf8')) as { sources: string[] };
  return sources.flatMap((source) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? []);
}
