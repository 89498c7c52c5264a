import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

// Checks the direction of every import, also of types: a file imports from its own part, and from the parts of the rows
// below it. Biome finds cycles of files. Checks the budget of each part, too.

/**
 * The parts of the project, from the bottom, with their budgets: the maximum number of lines of a part. Parts of one row do not
 * import each other. A commit that raises a budget says what it buys, and what it could not replace.
 */
const ROWS: readonly Readonly<Record<string, number>>[] = [
  {
    'lib/settings': 700,
    'lib/text.ts': 40,
    'lib/free-bytes.ts': 20,
    'lib/churning-set.ts': 40,
    'lib/version.ts': 10,
  },
  { 'lib/json': 170, 'lib/http': 630 },
  { 'lib/semaphore.ts': 60, 'lib/auth': 710, 'lib/observability': 1040 },
  { 'lib/postgres': 2790 },
  { 'lib/migrations': 670, 'lib/idempotency': 140 },
  { 'lib/users': 1850 },
  { 'lib/changes': 910 },
  { 'lib/cleanup.ts': 70, 'lib/service.ts': 100 },
  { 'lib/endpoint': 610 },
  { 'lib/lambda.ts': 120, 'lib/openapi': 460 },
  { handlers: 340 },
  { host: 2924 },
  { 'infra/client': 4970 },
  { infra: 2080 },
  { test: 44098 },
];

/** Folders that other code imports by one file only. `insiders` may import all files. */
const ENTRIES = [
  {
    folder: 'lib/postgres',
    entry: 'index.ts',
    insiders: /^(lib\/postgres\/|test\/(engine\/|stage\/statements\.|benchmark\/guard\/waste\.))/,
  },
  { folder: 'host/admission', entry: 'index.ts', insiders: /^(host\/admission|test)\// },
  { folder: 'handlers', entry: 'index.ts', insiders: /^(handlers\/index\.ts$|test\/)/ },
  // The service does not need what starts it for development.
  { folder: 'host/development', entry: 'launch.ts', insiders: /^(host\/development|test)\// },
];

const root = join(import.meta.dirname, '../..');
const files = globSync('{lib,handlers,host,infra,test}/**/*.{ts,mjs}', {
  cwd: root,
  // The last two are generated.
  exclude: ['**/node_modules', '**/dist', 'infra/client/src/{schema,checks}.ts'],
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

for (const [part, budget] of ROWS.flatMap((row) => Object.entries(row))) {
  const lines = files.filter((file) => partOf(file) === part).reduce((sum, file) => sum + linesOf(file), 0);
  if (lines > budget)
    report(`${part} has ${lines} lines, and its budget in infra/tools/layers.ts is ${budget}`);
}

function rowOf(file: string): number {
  return ROWS.findIndex((row) => Object.keys(row).includes(partOf(file) ?? ''));
}

function isSamePart(one: string, other: string): boolean {
  return partOf(one) !== undefined && partOf(one) === partOf(other);
}

/** The part that a file belongs to: the first one, because `infra/client` is a part of its own. */
function partOf(file: string): string | undefined {
  return ROWS.flatMap((row) => Object.keys(row)).find((part) => isWithin(part, file));
}

function linesOf(file: string): number {
  return readFileSync(join(root, file), 'utf8').split('\n').length - 1;
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
