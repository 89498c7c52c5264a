import type { Endpoint } from '../../lib/http/endpoint.ts';
import { openApiDocument } from '../../lib/openapi/document.ts';
import type { Settings } from '../../lib/settings/settings.ts';
import { asset, page, served } from './served.ts';
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

  return [
    served('/openapi.json', 'openapi.json', async () => ({
      text: JSON.stringify(openApiDocument(routes, settings, await findTokenUrl()), null, 2),
    })),
    page('/docs', 'swagger-ui.html', async () => policy([], originOf(await findTokenUrl()))),
    asset('/docs', 'swagger-ui.css'),
    asset('/docs', 'swagger-ui-bundle.js'),
    asset('/docs', 'swagger-ui-start.js'),
    asset('/docs', 'page.css'),
    asset('/docs', 'favicon.svg'),
    page('/redoc', 'redoc.html', () => policy(REDOC_STYLES)),
    asset('/redoc', 'redoc.standalone.js'),
    asset('/redoc', 'redoc-start.js'),
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
