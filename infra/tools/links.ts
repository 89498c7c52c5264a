import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

// Checks every relative link of every page: the file must exist, and so must the heading that an anchor names.
const root = join(import.meta.dirname, '../..');
const pages = globSync('**/*.md', { cwd: root, exclude: ['**/node_modules', '.data', 'dist'] });

for (const page of pages) {
  for (const target of linksOf(textOf(page))) {
    const [path = '', anchor] = target.split('#', 2);
    const file = path === '' ? page : join(dirname(page), path);
    const isFound = existsSync(join(root, file)) && (!anchor || anchorsOf(textOf(file)).includes(anchor));
    if (isFound) continue;
    process.stderr.write(`${page}: the link ${target} leads nowhere\n`);
    process.exitCode = 1;
  }
}

/** A page without its blocks of code, in which brackets are not links and # is not a heading. */
function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8').replace(/^( *)```.*?^\1```$/gms, '');
}

function linksOf(text: string): readonly string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of a page's headings, as GitHub makes them. No page has a heading twice. */
function anchorsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
