import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';

/** The files of the pages: the path at which each is served, and its source. */
const SOURCES = {
  '/': './pages/index.html',
  '/docs': './pages/swagger-ui.html',
  '/docs/swagger-ui-start.js': './pages/swagger-ui-start.js',
  '/docs/swagger-ui.css': 'swagger-ui-dist/swagger-ui.css',
  '/docs/swagger-ui-bundle.js': 'swagger-ui-dist/swagger-ui-bundle.js',
  '/docs/page.css': './pages/page.css',
  '/docs/favicon.svg': './pages/favicon.svg',
  '/redoc': './pages/redoc.html',
  '/redoc/redoc-start.js': './pages/redoc-start.js',
  '/redoc/redoc.standalone.js': 'redoc/bundles/redoc.standalone.js',
} as const;

export type AssetPath = keyof typeof SOURCES;

export const ASSETS = Object.keys(SOURCES) as AssetPath[];

/** The folder with the assets in a build. This code is then in the bundle, beside that folder or one level below. */
const BUILT = ['docs', '../docs'].map((folder) => join(import.meta.dirname, folder));

/** Copies all assets into `folder`. In a build this is `docs`, beside the bundle of the host. */
export async function copyAssets(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const sources = ASSETS.map(sourceOf);
  await Promise.all(sources.map((source) => copyFile(source, join(folder, basename(source)))));
}

/**
 * Reads an asset, as it is served.
 *
 * @throws an error with code ENOENT or MODULE_NOT_FOUND if the asset is missing
 */
export async function readAsset(path: AssetPath): Promise<string> {
  const built = BUILT.map((folder) => join(folder, basename(SOURCES[path]))).find((file) => existsSync(file));
  return withoutOtherHosts(await readFile(built ?? sourceOf(path), 'utf8'));
}

function sourceOf(path: AssetPath): string {
  return createRequire(import.meta.url).resolve(SOURCES[path]);
}

/** Removes ReDoc's logo and link to its makers' site, and references to source maps, which are not served. */
function withoutOtherHosts(text: string): string {
  return text
    .replace(/\n\/[/*]# sourceMappingURL=.*/, '')
    .replace('https://cdn.redoc.ly/redoc/logo-mini.svg', 'data:,')
    .replace('https://redocly.com/redoc/', '/redoc');
}
