import { hash } from 'node:crypto';
import { extname } from 'node:path';
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
  const writeDocument = async (tokenUrl: string) =>
    JSON.stringify(openApiDocument(routes, settings, tokenUrl), null, 2);

  return [
    served('/openapi.json', builtOnce(writeDocument, undefined, findTokenUrl)),
    page('/', () => policy([])),
    page('/docs', (tokenUrl) => policy([], originOf(tokenUrl)), findTokenUrl),
    page('/redoc', () => policy(REDOC_STYLES)),
    // Clients may cache an asset for an hour, because an update of the package changes it.
    ...ASSETS.filter((path) => extname(path) !== '').map((path) =>
      served(
        path,
        builtOnce(() => readAsset(path)),
        'max-age=3600',
      ),
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

/**
 * Builds and hashes a document once for each key, of which there are few. The response writer frees the bytes of a whole
 * buffer. These are kept, and therefore a part of one.
 */
function builtOnce(
  write: (key: string) => Promise<string>,
  policy: (key: string) => string = () => "default-src 'none'",
  findKey: () => string | Promise<string> = () => '',
): () => Promise<Served> {
  const built = new Map<string, Promise<Served>>();
  const build = async (key: string) => {
    const text = await write(key);
    const bytes = Buffer.from(`${text}\n`).subarray(0, -1);
    return { bytes, digest: hash('sha256', text, 'base64url'), policy: policy(key) };
  };
  return async () => {
    const key = await findKey();
    const known = built.get(key);
    if (known) return known;
    const building = build(key);
    built.set(key, building);
    building.catch(() => built.delete(key));
    return building;
  };
}

/** By the extension of the path; a page has none. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': JSON_TYPE,
};

function page(path: AssetPath, policy: (key: string) => string, findKey?: () => Promise<string>): Endpoint {
  return served(
    path,
    builtOnce(() => readAsset(path), policy, findKey),
  );
}

/** Serves what `read` returns, to every caller, with its digest as `ETag`. */
function served(path: `/${string}`, read: () => Promise<Served>, caching = 'no-cache'): Endpoint {
  return endpoint(
    {
      operationId: path.slice(1) || 'index',
      summary: 'Documentation',
      kind: 'operation',
      needs: 'nothing',
      method: 'GET',
      path,
      role: 'public',
      conditional: 'reading',
      success: 200,
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
      problems: [],
    },
    read,
  );
}
