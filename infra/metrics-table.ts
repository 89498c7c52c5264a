import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { METRICS } from '../lib/observability/metric-list.ts';

// Writes the README's table of metrics from their list; with --check it only compares.
const file = join(import.meta.dirname, '../README.md');
const BEGIN = '<!-- metrics: made by `node infra/metrics-table.ts` -->\n';
const END = '<!-- end of metrics -->';

const readme = readFileSync(file, 'utf8');
const [before, rest] = readme.split(BEGIN);
const after = rest?.slice(rest.indexOf(END));
const current = `${before}${BEGIN}${table()}${after}`;

if (!process.argv.includes('--check')) writeFileSync(file, current);
else if (current !== readme) {
  process.stderr.write('The metrics in README.md are not current: run node infra/metrics-table.ts\n');
  process.exitCode = 1;
}

function table(): string {
  const rows = Object.entries(METRICS).map(([name, metric]) => {
    const attributes = 'attributes' in metric ? metric.attributes : '';
    return `| \`${name}\` | ${metric.kind} | ${metric.unit} | ${attributes} | ${metric.meaning} |`;
  });
  const head = ['| metric | kind | unit | attributes | meaning |', '| --- | --- | --- | --- | --- |'];
  return ['', ...head, ...rows, '', ''].join('\n');
}
