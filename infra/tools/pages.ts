import { readFileSync } from 'node:fs';
import { endpoints } from '../../handlers/index.ts';
import { migrations } from '../../lib/migrations/index.ts';
import { updatedFields } from '../../lib/users/fields.ts';

// Checks that pages name what callers and operators must know: the changelog every migration and every field that
// callers can set, README.md and infra/docs/api.md the path of every endpoint.
const paths = endpoints.map(({ route }) => ['path', route.path] as const);
const NAMED = {
  'CHANGELOG.md': [
    ...Object.keys(migrations).map((name) => ['migration', name] as const),
    ...updatedFields.map(({ name }) => ['field', name] as const),
  ],
  'README.md': paths,
  'infra/docs/api.md': paths,
};

for (const [page, things] of Object.entries(NAMED)) {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  for (const [kind, name] of things) {
    if (text.includes(`\`${name}\``)) continue;
    process.stderr.write(`${page} does not name the ${kind} ${name}\n`);
    process.exitCode = 1;
  }
}
