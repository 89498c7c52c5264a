import { readFileSync } from 'node:fs';
import { migrations } from '../lib/migrations/index.ts';
import { updatedFields } from '../lib/users/fields.ts';

// Checks that CHANGELOG.md names every migration, so that operators know what a version changes in their database, and
// every field that callers can set.
const changelog = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8');

const names = {
  migration: Object.keys(migrations),
  field: updatedFields.map(({ name }) => name),
};

for (const [kind, named] of Object.entries(names)) {
  for (const name of named) {
    if (changelog.includes(`\`${name}\``)) continue;
    process.stderr.write(`CHANGELOG.md does not name the ${kind} ${name}\n`);
    process.exitCode = 1;
  }
}
