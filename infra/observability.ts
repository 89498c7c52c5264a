import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard, ROWS } from './observability/dashboard.ts';
import { rules } from './observability/rules.ts';

// Writes the alert rules, the dashboard and the list of its panels. With --check it only compares.
const folder = join(import.meta.dirname, 'observability');
const files = {
  'alerts.yaml': rules(),
  'dashboard.json': `${JSON.stringify(dashboard(), null, 2)}\n`,
  'dashboard.md': panels(),
};

for (const [name, content] of Object.entries(files)) {
  const file = join(folder, name);
  if (!process.argv.includes('--check')) writeFileSync(file, content);
  else if (readFileSync(file, 'utf8') !== content) {
    process.stderr.write(`infra/observability/${name} is not current: run node infra/observability.ts\n`);
    process.exitCode = 1;
  }
}

function panels(): string {
  const tables = ROWS.map(({ title, panels }) => {
    const rows = panels.map((panel) => `| ${panel.title} | ${panel.description} |`);
    return [`## ${title}`, '', '| panel | shows |', '| --- | --- |', ...rows, ''].join('\n');
  });
  return `# Panels of the dashboard

Made by \`npm run generate\` from \`dashboard.ts\`. The variables \`job\` and \`instance\` select what all panels show.

${tables.join('\n')}`;
}
