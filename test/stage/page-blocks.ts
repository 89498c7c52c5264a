import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** A block of code of a page: the last heading before it, its language, and its lines without their indentation. */
export interface Block {
  readonly heading: string;
  readonly language: string;
  readonly code: string;
}

/** All blocks of a page. */
export function blocksIn(page: string): readonly Block[] {
  const parts = readFileSync(join(ROOT, page), 'utf8').matchAll(
    /^#+ (?<title>.+)$|^(?<indent> *)```(?<language>.*)\n(?<lines>[\s\S]*?)^ *```$/gm,
  );
  const blocks: Block[] = [];
  let heading = '';
  for (const { groups: { title, indent = '', language = '', lines = '' } = {} } of parts) {
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
