import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { tokenUrlOf } from '../../host/docs/token-url.ts';
import { readResponse, refusal } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const PATHS = [
  ...['/', '/openapi.json', '/docs', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js'],
  ...['/docs/swagger-ui-start.js', '/docs/page.css', '/docs/favicon.svg', '/redoc'],
  ...['/redoc/redoc.standalone.js', '/redoc/redoc-start.js'],
];

/** Texts that would refer to other hosts, or to files that are not served. */
const ELSEWHERE = /^\/[/*]# sourceMappingURL=|cdn\.redoc\.ly|redocly\.com\/redoc|fonts\.googleapis/gm;

const issuer = await startTokenIssuer({ audience: 'user-management-service', port: 0 });
afterAll(issuer.stop);

describe('in development', () => {
  const service = serviceUnderTest(() => ({
    SVC_ENV: 'development',
    SVC_OAUTH_ISSUER: issuer.issuer,
    SVC_OAUTH_JWKS_URI: issuer.jwksUri,
    SVC_OAUTH_AUDIENCE: 'user-management-service',
    SVC_OAUTH_ROLES_CLAIM: 'aud',
  }));

  test('/openapi.json is the committed document with the token endpoint of the issuer', async () => {
    const response = await fetch(`${service.url}/openapi.json`);
    const committed = readFileSync(new URL('../../infra/openapi.json', import.meta.url), 'utf8');

    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toEqual(
      JSON.parse(committed.replace('"/oauth2/token"', JSON.stringify(issuer.tokenEndpoint))),
    );
  });

  test('an issuer without metadata has its token endpoint at /token', async () => {
    expect(await tokenUrlOf('http://127.0.0.1:9/')()).toBe('http://127.0.0.1:9/token');
  });

  test('/ is a page with links to the documentation', async () => {
    const page = await (await fetch(service.url)).text();

    for (const path of ['/docs', '/redoc', '/openapi.json']) expect(page).toContain(`href="${path}"`);
  });

  test('a page has the Referrer-Policy no-referrer', async () => {
    expect((await fetch(service.url)).headers.get('referrer-policy')).toBe('no-referrer');
  });

  test('a page runs nothing inline, loads nothing from other hosts, and connects only to the issuer', async () => {
    const policyOf = async (path: string) =>
      (await fetch(service.url + path)).headers.get('content-security-policy')?.split('; ').sort();
    const everywhere = [
      ...["default-src 'none'", "script-src 'self'", "img-src 'self' data:", "base-uri 'none'"],
      ...["form-action 'none'", "frame-ancestors 'none'"],
    ];

    expect(await policyOf('/docs')).toEqual(
      [...everywhere, "style-src 'self'", `connect-src 'self' ${issuer.issuer}`].sort(),
    );
    const styles =
      "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='";
    expect(await policyOf('/redoc')).toEqual([...everywhere, styles, "connect-src 'self'"].sort());
  });

  test.for(PATHS)(
    '%s has its Content-Type and an ETag of its bytes, needs no token, and supports HEAD and If-None-Match',
    async (path) => {
      const response = await fetch(service.url + path);
      const text = await response.text();
      const head = await fetch(service.url + path, { method: 'HEAD' });

      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toMatch(mediaTypeOf(path));
      expect(response.headers.get('cache-control')).toMatch(/^(no-cache|max-age=3600)$/);
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(text.match(ELSEWHERE)).toBe(null);
      expect(head.status).toBe(200);
      expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(text)));

      const etag = response.headers.get('etag') ?? '';
      const ask = (ifNoneMatch: string) =>
        fetch(service.url + path, { headers: { 'If-None-Match': ifNoneMatch } });

      expect(etag).toBe(`"${hash('sha256', Buffer.from(text), 'base64url')}"`);
      for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const unmodified = await ask(tags);
        expect([unmodified.status, await unmodified.text()]).toEqual([304, '']);
        expect(unmodified.headers.get('etag')).toBe(etag);
        expect(unmodified.headers.get('cache-control')).toBe(response.headers.get('cache-control'));
      }
      const other = await ask('"other"');
      expect([other.status, await other.text()]).toEqual([200, text]);
    },
  );
});

describe('in production', () => {
  const service = serviceUnderTest();

  test('every path of the documentation is unknown', async () => {
    for (const path of [...PATHS, '/docs/', '/redoc/'])
      expect(await readResponse(await fetch(service.url + path))).toEqual(
        refusal('not_found_error', path, { detail: 'This path does not exist.' }),
      );
  });
});

function mediaTypeOf(path: string): RegExp {
  if (path.endsWith('.css')) return /^text\/css; charset=utf-8$/;
  if (path.endsWith('.js')) return /^text\/javascript; charset=utf-8$/;
  if (path.endsWith('.svg')) return /^image\/svg\+xml$/;
  return path.endsWith('.json') ? /^application\/json; charset=utf-8$/ : /^text\/html; charset=utf-8$/;
}
