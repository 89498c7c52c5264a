import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The parts of the pages: name of a file to its source. */
const SOURCES = {
  'swagger-ui.html': './pages/swagger-ui.html',
  'swagger-ui-start.js': './pages/swagger-ui-start.js',
  'swagger-ui.css': 'swagger-ui-dist/swagger-ui.css',
  'swagger-ui-bundle.js': 'swagger-ui-dist/swagger-ui-bundle.js',
  'redoc.html': './pages/redoc.html',
  'redoc-start.js': './pages/redoc-start.js',
  'redoc.standalone.js': 'redoc/bundles/redoc.standalone.js',
  'page.css': './pages/page.css',
  'favicon.svg': './pages/favicon.svg',
} as const;

export type AssetName = keyof typeof SOURCES;

/** The folder with the assets in a build. This code is then in the bundle, beside that folder or one level below. */
const BUILT = ['docs', '../docs'].map((folder) => join(import.meta.dirname, folder));

/** Copies all assets into `folder`. In a build this is `docs`, beside the bundle of the host. */
export async function copyAssets(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of Object.keys(SOURCES) as AssetName[]) await copyFile(sourceOf(name), join(folder, name));
}

/**
 * Reads an asset, as it is served.
 *
 * @throws an error with code ENOENT or MODULE_NOT_FOUND if the asset is missing
 */
export async function readAsset(name: AssetName): Promise<string> {
  const built = BUILT.map((folder) => join(folder, name)).find((file) => existsSync(file));
  return withoutOtherHosts(await readFile(built ?? sourceOf(name), 'utf8'));
}

function sourceOf(name: AssetName): string {
  return createRequire(import.meta.url).resolve(SOURCES[name]);
}

/** Removes ReDoc's logo and link to its makers' site, and references to source maps, which are not served. */
function withoutOtherHosts(text: string): string {
  return text
    .replace(/\n\/[/*]# sourceMappingURL=.*/, '')
    .replace('https://cdn.redoc.ly/redoc/logo-mini.svg', 'data:,')
    .replace('https://redocly.com/redoc/', '/redoc');
}
