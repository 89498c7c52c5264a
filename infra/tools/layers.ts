import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

// Checks the direction of every import, also of types: a file imports from its own part, and from the parts of the rows
// below it. Biome finds cycles of files.

/** The parts of the project, from the bottom. Parts of one row do not import each other. */
const ROWS = [
  ['lib/settings', 'lib/text.ts', 'lib/free-bytes.ts', 'lib/churning-set.ts', 'lib/version.ts'],
  ['lib/json', 'lib/http'],
  ['lib/semaphore.ts', 'lib/auth', 'lib/observability'],
  ['lib/postgres'],
  ['lib/migrations', 'lib/idempotency'],
  ['lib/users'],
  ['lib/changes'],
  ['lib/cleanup.ts', 'lib/service.ts'],
  ['lib/endpoint'],
  ['lib/lambda.ts', 'lib/openapi'],
  ['handlers'],
  ['host'],
  ['infra'],
  ['test'],
];

/** Folders that other code imports by one file only. `insiders` may import all files. */
const ENTRIES = [
  {
    folder: 'lib/postgres',
    entry: 'index.ts',
    insiders: /^(lib\/postgres\/|test\/(engine\/|stage\/statements\.|benchmark\/guard\/waste\.))/,
  },
  {
    folder: 'lib/postgres/sessions',
    entry: 'index.ts',
    insiders: /^(lib\/postgres\/sessions\/|test\/(engine\/|stage\/statements\.|benchmark\/guard\/waste\.))/,
  },
  { folder: 'host/admission', entry: 'index.ts', insiders: /^(host\/admission|test)\// },
  { folder: 'handlers', entry: 'index.ts', insiders: /^(handlers\/index\.ts$|test\/)/ },
  // The service does not need what starts it for development.
  { folder: 'host/development', entry: 'launch.ts', insiders: /^(host\/development|test)\// },
];

const root = join(import.meta.dirname, '../..');
const files = globSync('{lib,handlers,host,infra,test}/**/*.{ts,mjs}', {
  cwd: root,
  exclude: ['**/node_modules', '**/dist'],
});

for (const file of files) {
  if (rowOf(file) < 0) report(`${file} is in no row of infra/tools/layers.ts`);
  for (const imported of importsOf(file)) {
    if (!isSamePart(file, imported) && rowOf(imported) >= rowOf(file))
      report(`${file} imports ${imported}, which is not below it`);
    for (const { folder, entry, insiders } of ENTRIES) {
      if (!isWithin(folder, imported) || insiders.test(file) || imported === `${folder}/${entry}`) continue;
      report(`${file} imports ${imported}: outside of ${folder}, only its ${entry} is imported`);
    }
  }
}

function rowOf(file: string): number {
  return ROWS.findIndex((row) => row.some((part) => isWithin(part, file)));
}

function isSamePart(one: string, other: string): boolean {
  return ROWS.flat().some((part) => isWithin(part, one) && isWithin(part, other));
}

function isWithin(part: string, file: string): boolean {
  return file === part || file.startsWith(`${part}/`);
}

/** The files of the project that a file imports. */
function importsOf(file: string): readonly string[] {
  const specifiers = readFileSync(join(root, file), 'utf8').matchAll(
    /\b(?:from|import|import\() ?'(\.[^']+)'/g,
  );
  return [...specifiers].map(([, path = '']) => join(dirname(file), path));
}

function report(fault: string): void {
  process.stderr.write(`${fault}\n`);
  process.exitCode = 1;
}
