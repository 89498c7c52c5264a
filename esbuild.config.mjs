import { rmSync } from 'node:fs';
import { build } from 'esbuild';
import { copyAssets } from './host/docs/assets.ts';
import { functions } from './infra/functions.ts';

/** What pg and other CommonJS packages ask for, which an ES module does not have. */
const REQUIRE =
  "import{createRequire as $createRequire}from'node:module';const require=$createRequire(import.meta.url);";

/**
 * Parts that libraries load whether they are used or not, and that we do not use: what stands in their place, and
 * what it saves a function.
 */
const UNUSED = [
  // The names of status codes. Importing node:http loads Node's whole HTTP client: 25 ms of a cold start.
  { path: /^node:http$/, importer: /@middy\/util/, contents: 'export const STATUS_CODES = {};' },
  // What writes and rewrites tables, which only migrations do: 50 KB.
  { path: /with-schema-plugin\.js$/, importer: /kysely/, contents: 'export class WithSchemaPlugin {}' },
  { path: /schema-module\.js$/, importer: /kysely/, contents: 'export class SchemaModule {}' },
];

const withoutUnused = {
  name: 'without-unused',
  setup({ onResolve, onLoad }) {
    for (const [index, { path, importer, contents }] of UNUSED.entries()) {
      const namespace = `unused-${index}`;
      onResolve({ filter: path }, (asked) =>
        importer.test(asked.importer) ? { path: asked.path, namespace } : undefined,
      );
      onLoad({ filter: /.*/, namespace }, () => ({ contents }));
    }
  },
};

const common = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // What is imported dynamically stays in files of its own, which are not loaded until they are needed.
  splitting: true,
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunks/[name]-[hash]',
  banner: { js: REQUIRE },
  minify: true,
  legalComments: 'none',
  sourcemap: true,
  // Optional, and not installed: pg asks for it and goes on without.
  external: ['pg-native'],
  logLevel: 'warning',
};

rmSync('dist', { recursive: true, force: true });
await build({
  ...common,
  entryPoints: ['host/main.ts', 'host/migrate.ts'],
  outdir: 'dist/host',
});
await copyAssets('dist/host/docs');
for (const { operationId, file } of await functions()) {
  const outdir = `dist/functions/${operationId}`;
  await build({ ...common, entryPoints: { index: file }, outdir, plugins: [withoutUnused] });
}
