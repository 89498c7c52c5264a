import { rmSync } from 'node:fs';
import { build } from 'esbuild';
import { functions } from './infra/functions.ts';

/** What pg and other CommonJS packages ask for, which an ES module does not have. */
const REQUIRE =
  "import{createRequire as $createRequire}from'node:module';const require=$createRequire(import.meta.url);";

/**
 * @middy/util asks node:http for the names of status codes, which we never use; and importing it loads Node's
 * whole HTTP client, a fifth of a function's cold start.
 */
const withoutHttp = {
  name: 'without-http',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http$/ }, ({ importer }) =>
      importer.includes('@middy/util') ? { path: 'status-codes', namespace: 'without-http' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'without-http' }, () => ({
      contents: 'export const STATUS_CODES = {};',
    }));
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
  plugins: [withoutHttp],
  logLevel: 'warning',
};

rmSync('dist', { recursive: true, force: true });
await build({
  ...common,
  entryPoints: ['host/main.ts', 'host/migrate.ts'],
  outdir: 'dist/host',
});
for (const { operationId, file } of await functions()) {
  const outdir = `dist/functions/${operationId}`;
  await build({ ...common, entryPoints: { index: file }, outdir });
}
