import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { copyAssets } from './host/docs/assets.ts';
import { buildVersion, checkedVersion } from './infra/build-version.ts';
import { functions } from './infra/functions.ts';

/** `require` for pg and other CommonJS packages. An ES module does not have it. */
const REQUIRE =
  "import{createRequire as $createRequire}from'node:module';const require=$createRequire(import.meta.url);";

/** Replaces an exporter that no setting accepts. */
const NO_GRPC = `class NoGrpc { constructor() { throw new Error('exports go over HTTP, not over gRPC'); } }
export { NoGrpc as OTLPLogExporter, NoGrpc as OTLPMetricExporter, NoGrpc as OTLPTraceExporter };
export { NoGrpc as createEmptyMetadata, NoGrpc as createInsecureCredentials, NoGrpc as createSslCredentials };`;

/**
 * Parts of libraries that the service does not use, but that are always loaded: their replacements, and what each
 * saves a function. Without them a function has about 400 KB.
 */
const UNUSED = [
  // The names of status codes. Importing node:http loads Node's whole HTTP client: 25 ms of a cold start.
  { path: /^node:http$/, importer: /@middy\/util/, contents: 'export const STATUS_CODES = {};' },
  // kysely's query builders: statements are written with its `sql` only. 20 KB.
  {
    path: /\/expression-builder\.js$/,
    importer: /kysely/,
    contents: 'export const createExpressionBuilder = () => {}, expressionBuilder = () => {};',
  },
  {
    path: /\/select-query-builder\.js$/,
    importer: /kysely/,
    contents: 'export const createSelectQueryBuilder = () => {};',
  },
  // The schema builder and its parts, which only migrations use: 50 KB.
  { path: /with-schema-plugin\.js$/, importer: /kysely/, contents: 'export class WithSchemaPlugin {}' },
  { path: /schema-module\.js$/, importer: /kysely/, contents: 'export class SchemaModule {}' },
  // zod's conversion to JSON Schema, which only the documentation uses: 14 KB.
  { path: /json-schema-processors\.js$/, importer: /zod.v4.classic/, contents: 'module.exports = {};' },
  {
    path: /to-json-schema\.js$/,
    importer: /zod.v4.classic/,
    contents: 'export const createToJSONSchemaMethod = () => {}, createStandardJSONSchemaMethod = () => {};',
  },
];

// gRPC, which no setting accepts: 430 KB, 30 ms of the first call or the start when traces are on.
const GRPC = { path: /^@opentelemetry\/.+-grpc/, importer: /sdk-node/, contents: NO_GRPC };

// Only the versions in package.json are used. The rest is 7 KB in the host and in every function that traces.
const { version: given } = parseArgs({ options: { version: { type: 'string' } } }).values;
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const versions = { version, buildVersion: given ? checkedVersion(given) : buildVersion() };
const DESCRIPTION = {
  path: /^\.\.\/package\.json$/,
  importer: /lib\/version\.ts$/,
  contents: `export default ${JSON.stringify(versions)};`,
};

// Importing node:http as an ES module reads all of its exports. WebSocket among them loads undici: 25 ms of each start.
const HTTP = {
  path: /^node:http$/,
  importer: /\.[jt]s$/,
  contents: `module.exports = require('node:http');`,
};

const replacing = (parts) => ({
  name: 'replacing',
  setup({ onResolve, onLoad }) {
    for (const [index, { path, importer, contents }] of parts.entries()) {
      const namespace = `replaced-${index}`;
      onResolve({ filter: path }, (asked) =>
        importer.test(asked.importer) ? { path: asked.path, namespace } : undefined,
      );
      onLoad({ filter: /.*/, namespace }, () => ({ contents }));
    }
  },
});

/** The oldest major version of Node.js that runs the bundles, and the target of their syntax. */
const NODE = 24;

const common = {
  bundle: true,
  // Where node_modules is a link, its target must not show in the bundle.
  preserveSymlinks: true,
  platform: 'node',
  target: `node${NODE}`,
  format: 'esm',
  // Dynamic imports stay in files of their own, which are loaded only when they are needed.
  splitting: true,
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunks/[name]-[hash]',
  banner: { js: REQUIRE },
  legalComments: 'none',
  // Without the sources, the maps still have every position, in a third of the size.
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
};

/**
 * Writes the first file of a program. Node loads all static imports before it runs a line, and an older Node.js refuses
 * the syntax of the others: this file checks the version, and then imports them.
 */
function writeFirstFile(file, load) {
  const needed = `The User Management Service needs Node.js ${NODE} or later, and this is Node.js `;
  writeFileSync(
    file,
    `const { node } = process.versions;
if (parseInt(node) < ${NODE}) {
  process.stderr.write('${needed}' + node + '.\\n');
  process.exit(1);
}
${load}
`,
  );
}

const begun = new Date();
rmSync('dist', { recursive: true, force: true });
await build({
  ...common,
  entryPoints: {
    'programs/main': 'host/main.ts',
    'programs/migrate': 'host/commands/migrate.ts',
    'programs/maintain': 'host/commands/run-cleanup.ts',
  },
  outdir: 'dist/host',
  plugins: [replacing([GRPC, DESCRIPTION, HTTP])],
});
for (const name of ['main', 'migrate', 'maintain'])
  writeFirstFile(`dist/host/${name}.mjs`, `import('./programs/${name}.mjs');`);
await copyAssets('dist/host/docs');
await build({ ...common, entryPoints: ['host/development/issuer.ts'], outdir: 'dist/development' });
for (const { operationId, file } of await functions()) {
  // Functions are minified for the cold start. The host is not minified, so that stacks in its log are readable.
  await build({
    ...common,
    minify: true,
    entryPoints: { function: file },
    outdir: `dist/functions/${operationId}`,
    plugins: [replacing([...UNUSED, GRPC, DESCRIPTION])],
  });
  const load = "export const { handler } = await import('./function.mjs');";
  writeFirstFile(`dist/functions/${operationId}/index.mjs`, load);
}
// Marks the build as complete. Its time is the beginning of the build, so later changes of sources are noticed.
writeFileSync('dist/built', '');
utimesSync('dist/built', begun, begun);
