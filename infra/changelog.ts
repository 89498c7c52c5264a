import { readFileSync } from 'node:fs';
import { migrations } from '../lib/migrations/index.ts';

// Checks that CHANGELOG.md names every migration, so that operators know what a version changes in their database.
const changelog = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8');

for (const name of Object.keys(migrations)) {
  if (changelog.includes(`\`${name}\``)) continue;
  process.stderr.write(`CHANGELOG.md does not name the migration ${name}\n`);
  process.exitCode = 1;
}
