import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Writes a generated file below `infra/`. With --check it only compares, and the process fails if the file is not
 * current.
 */
export function keepFile(name: string, content: string): void {
  const file = join(import.meta.dirname, '..', name);
  if (!process.argv.includes('--check')) writeFileSync(file, content);
  else if (readFileSync(file, 'utf8') !== content) {
    process.stderr.write(`infra/${name} is not current. Run: npm run generate\n`);
    process.exitCode = 1;
  }
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return lines.join('\n');
}
