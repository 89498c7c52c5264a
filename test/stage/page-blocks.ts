import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** All blocks of code of a page: the last heading before each, its language, and its lines without their indentation. */
export function blocksIn(page: string) {
  const blocks: { readonly heading: string; readonly language: string; readonly code: string }[] = [];
  let heading = '';
  const parts = /^#+ (.+)$|^( *)```(.*)\n([\s\S]*?)^ *```$/gm;
  for (const [, title, indent, language = '', lines = ''] of readFileSync(join(ROOT, page), 'utf8').matchAll(
    parts,
  )) {
    if (title) heading = title;
    else blocks.push({ heading, language, code: lines.replaceAll(new RegExp(`^${indent}`, 'gm'), '') });
  }
  return blocks;
}

/**
 * The code of the blocks under a heading of a page (`Start`), of one language under it (`Start, sql`), or of the whole
 * page, for a test that runs them. Write the arguments as texts: `test/pages/blocks.test.ts` reads them in the tests, and
 * finds the blocks that no test gets.
 *
 * @throws {Error} if there are not `count` blocks under the heading
 */
export function blocksOf(page: string, place?: string, count = 1): readonly string[] {
  const found = blocksIn(page).filter(
    ({ heading, language }) => !place || [heading, `${heading}, ${language}`].includes(place),
  );
  if (place && found.length !== count)
    throw new Error(`${page}: ${found.length} blocks under "${place}", and a test runs ${count}`);
  return found.map(({ code }) => code);
}

/** The code of the only block of a place. */
export const blockOf = (page: string, place: string): string => blocksOf(page, place)[0] ?? '';
