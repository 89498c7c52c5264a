import { hash } from 'node:crypto';
import { extname } from 'node:path';
import { LRUCache } from 'lru-cache';
import { type Endpoint, endpoint } from '../../lib/endpoint/endpoint.ts';
import { cacheControl, JSON_TYPE } from '../../lib/http/reply.ts';
import { openApiDocument } from '../../lib/openapi/document.ts';
import type { Settings } from '../../lib/settings/settings.ts';
import { ASSETS, type AssetPath, readAsset } from './assets.ts';
import { originOf, tokenUrlOf } from './token-url.ts';

/**
 * ReDoc adds two kinds of style elements to its page: empty ones, which it fills with rules later, and one for its
 * scroll bars. The hashes of the two texts permit these and no other inline style.
 */
const REDOC_STYLES = [
  'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
  'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc=',
];

/** The documentation as endpoints: the OpenAPI document, Swagger UI and ReDoc. */
export function documentation(endpoints: readonly Endpoint[], settings: Settings): readonly Endpoint[] {
  const routes = endpoints.map(({ route }) => route);
  const findTokenUrl = tokenUrlOf(settings.oauth.issuer);
  const writeDocument = (tokenUrl: string) =>
    JSON.stringify(openApiDocument(routes, settings, tokenUrl), null, 2);
  const page = (path: AssetPath, styles: readonly string[] = []) =>
    served(path, () => readAsset(path), { policy: () => policy(styles) });

  return [
    served('/openapi.json', writeDocument, { findTokenUrl }),
    page('/'),
    page('/redoc', REDOC_STYLES),
    served('/docs', () => readAsset('/docs'), { policy: (url) => policy([], originOf(url)), findTokenUrl }),
    // Clients may cache an asset for an hour, because an update of the package changes it.
    ...ASSETS.filter((path) => extname(path) !== '').map((path) =>
      served(path, () => readAsset(path), { caching: 'max-age=3600' }),
    ),
  ];
}

/**
 * The Content-Security-Policy of a page: nothing from elsewhere, and nothing inline except these styles. The page may send
 * requests to `origin`.
 */
function policy(styles: readonly string[], origin = ''): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...styles.map((hash) => `'${hash}'`)].join(' '),
    "img-src 'self' data:",
    `connect-src 'self' ${origin}`.trim(),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

type Served = { readonly bytes: Buffer; readonly digest: string; readonly policy: string };

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': JSON_TYPE,
};

/**
 * Serves a text to every caller, with its digest as `ETag`. It is built and hashed once for each token URL. The response
 * writer frees the bytes of whole buffers. These are kept, and are therefore a part of one.
 */
function served(
  path: `/${string}`,
  write: (tokenUrl: string) => string | Promise<string>,
  { policy = (_: string) => "default-src 'none'", caching = 'no-cache', findTokenUrl = async () => '' },
): Endpoint {
  const built = new LRUCache<string, Served>({
    max: 2,
    async fetchMethod(tokenUrl) {
      const text = await write(tokenUrl);
      const bytes = Buffer.from(`${text}\n`).subarray(0, -1);
      return { bytes, digest: hash('sha256', text, 'base64url'), policy: policy(tokenUrl) };
    },
  });
  return endpoint(
    {
      operationId: path.slice(1) || 'index',
      summary: 'Documentation',
      needs: 'nothing',
      method: 'GET',
      path,
      role: 'public',
      conditional: 'reading',
      reply: {
        mediaType: MEDIA_TYPES[extname(path)] ?? 'text/html; charset=utf-8',
        write: ({ bytes }: Served) => bytes,
        headers: {
          ...cacheControl(caching),
          ETag: {
            description: 'The SHA-256 digest of the text.',
            of: ({ digest }: Served) => `"${digest}"`,
          },
          'Referrer-Policy': { description: 'Always `no-referrer`.', of: () => 'no-referrer' },
          'Content-Security-Policy': {
            description: 'What a page may load and run.',
            of: ({ policy }: Served) => policy,
          },
        },
      },
    },
    async () => (await built.fetch(await findTokenUrl())) as Served,
  );
}
