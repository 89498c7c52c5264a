import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const README = join(import.meta.dirname, '../README.md');

/**
 * Writes a table of the README, between the lines that say which script makes it; with --check it only compares, and the
 * process fails where the README is not current.
 */
export function keepReadmeTable(name: string, head: readonly string[], rows: readonly string[]): void {
  const script = `node infra/${name}-table.ts`;
  const begin = `<!-- ${name}: made by \`${script}\` -->\n`;
  const readme = readFileSync(README, 'utf8');
  const [before, rest] = readme.split(begin);
  const after = rest?.slice(rest.indexOf(`<!-- end of ${name} -->`));
  const rule = head.map(() => '---');
  const lines = ['', ...[head, rule].map((cells) => `| ${cells.join(' | ')} |`), ...rows, '', ''];
  const current = `${before}${begin}${lines.join('\n')}${after}`;

  if (!process.argv.includes('--check')) writeFileSync(README, current);
  else if (current !== readme) {
    process.stderr.write(`The ${name} in README.md are not current: run ${script}\n`);
    process.exitCode = 1;
  }
}
