import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** What the pages consist of: the name of a file -> where it comes from. */
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

/** Where the build has put the assets: this is then a part of the bundle, beside that folder or one below. */
const BUILT = ['docs', '../docs'].map((folder) => join(import.meta.dirname, folder));

/** Puts all assets into `folder`: for the build that is `docs`, beside the bundle of the host. */
export async function copyAssets(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of Object.keys(SOURCES) as AssetName[]) await copyFile(sourceOf(name), join(folder, name));
}

/**
 * Reads an asset, as it is served.
 *
 * @throws an error with code ENOENT or MODULE_NOT_FOUND when it is nowhere
 */
export async function readAsset(name: AssetName): Promise<string> {
  const built = BUILT.map((folder) => join(folder, name)).find((file) => existsSync(file));
  return withoutOtherHosts(await readFile(built ?? sourceOf(name), 'utf8'));
}

function sourceOf(name: AssetName): string {
  return createRequire(import.meta.url).resolve(SOURCES[name]);
}

/** ReDoc shows its maker's logo and links to its site, and there are maps for debuggers that are not served. */
function withoutOtherHosts(text: string): string {
  return text
    .replace(/\n\/[/*]# sourceMappingURL=.*/, '')
    .replace('https://cdn.redoc.ly/redoc/logo-mini.svg', 'data:,')
    .replace('https://redocly.com/redoc/', '/redoc');
}
