import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard } from './observability/dashboard.ts';
import { rules } from './observability/rules.ts';

// Writes the alert rules and the dashboard from their lists; with --check it only compares.
const folder = join(import.meta.dirname, 'observability');
const files = { 'alerts.yaml': rules(), 'dashboard.json': `${JSON.stringify(dashboard(), null, 2)}\n` };

for (const [name, content] of Object.entries(files)) {
  const file = join(folder, name);
  if (!process.argv.includes('--check')) writeFileSync(file, content);
  else if (readFileSync(file, 'utf8') !== content) {
    process.stderr.write(`infra/observability/${name} is not current: run node infra/observability.ts\n`);
    process.exitCode = 1;
  }
}
