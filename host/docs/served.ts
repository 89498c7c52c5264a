import { hash } from 'node:crypto';
import { extname } from 'node:path';
import { type Endpoint, endpoint } from '../../lib/http/endpoint.ts';
import { cacheControl, JSON_TYPE } from '../../lib/http/reply.ts';
import { type AssetName, readAsset } from './assets.ts';

/** A text, and its Content-Security-Policy if it is a page. */
type Served = { readonly text: string; readonly policy?: string };

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': JSON_TYPE,
};

/** Serves an asset below `folder`. Clients may cache it for an hour, because an update of the package changes it. */
export function asset(folder: `/${string}`, name: AssetName): Endpoint {
  return served(`${folder}/${name}`, name, async () => ({ text: await readAsset(name) }), 'max-age=3600');
}

/** Serves a page with a Content-Security-Policy. */
export function page(path: `/${string}`, name: AssetName, policy: () => string | Promise<string>): Endpoint {
  return served(path, name, async () => ({ text: await readAsset(name), policy: await policy() }));
}

/** Serves the text that `read` returns, to every caller, with its digest as `ETag`. The extension of `name` determines its media type. */
export function served(
  path: `/${string}`,
  name: string,
  read: () => Promise<Served>,
  caching = 'no-cache',
): Endpoint {
  return endpoint(
    {
      operationId: path.slice(1),
      summary: 'Documentation',
      kind: 'operation',
      needs: 'nothing',
      method: 'GET',
      path,
      role: 'public',
      conditional: 'reading',
      success: 200,
      reply: {
        mediaType: MEDIA_TYPES[extname(name)] ?? 'text/plain; charset=utf-8',
        write: ({ text }: Served) => text,
        headers: {
          ...cacheControl(caching),
          ETag: {
            description: 'The SHA-256 digest of the text.',
            of: ({ text }: Served) => `"${hash('sha256', text, 'base64url')}"`,
          },
          'Referrer-Policy': { description: 'Always `no-referrer`.', of: () => 'no-referrer' },
          'Content-Security-Policy': {
            description: 'What a page may load and run.',
            of: ({ policy = "default-src 'none'" }: Served) => policy,
          },
        },
      },
      problems: [],
    },
    read,
  );
}
