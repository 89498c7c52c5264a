import { describe, expect, test } from 'vitest';
import type { HttpExchange, HttpResponse } from './exchange.ts';
import { type HttpRule, lint, RULES } from './rules.ts';

/** What differs from a request for a resource, and from its response, which keep all rules. */
type Change = {
  readonly method?: string;
  readonly target?: string;
  /** Fields of the request. */
  readonly sends?: Readonly<Record<string, string>>;
  readonly status?: number;
  /** Fields of the response: other values, repeated ones, and null for those that it lacks. */
  readonly has?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly content?: string;
  readonly onSocket?: Partial<HttpResponse['onSocket']> | 'no';
  readonly plain?: Change;
};

const ETAG = { ETag: '"1"' };
const PROBLEM = {
  type: 'about:blank',
  title: 'Not Found',
  status: 404,
  detail: 'This path does not exist.',
  instance: '/things',
};

function response({ status = 200, has = {}, content, onSocket = {} }: Change, method: string): HttpResponse {
  const isEmpty = method === 'HEAD' || status === 204 || status === 304;
  const text = content ?? (isEmpty ? '' : status < 400 ? '[]' : JSON.stringify({ ...PROBLEM, status }));
  const length =
    status === 204 || status === 304 ? null : String(method === 'HEAD' ? '[]'.length : text.length);
  const fields = {
    Date: new Date().toUTCString(),
    'Cache-Control': 'private, no-cache',
    'Content-Length': length,
    'Content-Type':
      status >= 400
        ? 'application/problem+json'
        : status === 204 || status === 304
          ? null
          : 'application/json',
    ...has,
  };
  return {
    status,
    fields: Object.entries(fields).flatMap(([name, value]) =>
      value === null ? [] : [value].flat().map((one): [string, string] => [name, one as string]),
    ),
    content: Buffer.from(text, 'latin1'),
    ...(onSocket !== 'no' && {
      onSocket: {
        statusLine: `HTTP/1.1 ${status} Reason`,
        receivedAt: Date.now(),
        afterwards: 'a response',
        ...onSocket,
      },
    }),
  };
}

function exchange(change: Change): HttpExchange {
  const { method = 'GET', target = '/things', sends = {}, plain } = change;
  return {
    request: { method, target, fields: Object.entries(sends), body: Buffer.alloc(0) },
    response: response(change, method),
    ...(plain && { plain: response(plain, 'GET') }),
  };
}

const problem = (members: object): Change => ({
  status: 404,
  content: JSON.stringify({ ...PROBLEM, ...members }),
});
const notModified: Change = {
  sends: { 'If-None-Match': 'W/"1"' },
  status: 304,
  has: ETAG,
  plain: { has: ETAG },
};

/** Exchanges that keep all rules. */
const GOOD: readonly Change[] = [
  {},
  { onSocket: 'no', has: { Date: null, 'Content-Length': null } },
  { has: { Connection: 'keep-alive', 'Keep-Alive': 'timeout=5' } },
  { has: { Connection: 'close' }, onSocket: { afterwards: 'the end' } },
  { sends: { Connection: 'close' }, onSocket: { afterwards: 'the end' } },
  { method: 'HEAD', plain: {} },
  notModified,
  { sends: { 'If-None-Match': '"2"' }, has: ETAG },
  { sends: { 'If-None-Match': '*' }, status: 304, has: ETAG },
  { sends: { 'If-Match': '"2"' }, status: 412 },
  { sends: { 'If-Match': '"0", "1"' }, has: ETAG },
  { method: 'DELETE', status: 204 },
  { method: 'OPTIONS', status: 204, has: { Allow: 'GET, HEAD, OPTIONS' } },
  { method: 'PUT', status: 405, has: { Allow: 'GET, HEAD' } },
  { method: 'PATCH', status: 415, has: { 'Accept-Patch': 'application/json, application/merge-patch+json' } },
  { status: 401, has: { 'WWW-Authenticate': 'Bearer' } },
  { status: 403, has: { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="a b"' } },
  { status: 503, has: { 'Retry-After': '1' } },
  { method: 'POST', status: 201, content: '{}', has: { Location: '/things/1' } },
  { method: 'POST', status: 201, content: '[{}]' },
  { has: { Link: '</things?cursor=a%20b>; rel="next"; title="a, b", <https://a.test/>; rel=self' } },
  { has: { 'Last-Modified': 'Sun, 06 Nov 1994 08:49:37 GMT' } },
  {
    sends: { 'Accept-Encoding': 'br, gzip;q=0.5' },
    has: { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' },
  },
  problem({ errors: [], type: 'urn:svc:error:not_found_error' }),
  { target: '/%zz?a', ...problem({ instance: '/%zz' }) },
];

/** What breaks each rule, and no other one. */
const VIOLATIONS: Readonly<Record<keyof typeof RULES, readonly Change[]>> = {
  'status line': [
    { onSocket: { statusLine: 'HTTP/1.0 200 OK' } },
    { onSocket: { statusLine: 'HTTP/1.1 200' } },
  ],
  'field names': [{ has: { 'X Y': '1' } }, { has: { '': '1' } }],
  'field values': [{ has: { 'X-Y': 'é' } }, { has: { 'X-Y': 'a\u0001b' } }, { has: { 'X-Y': ' a' } }],
  'single fields': [{ has: { 'X-Request-ID': ['1', '2'] } }, { has: { ETag: ['"1"', '"1"'] } }],
  'request fields': [{ has: { Host: 'a.test' } }, { has: { 'If-Match': '*' } }],
  'connection fields': [
    { has: { 'Keep-Alive': 'timeout=5' } },
    { has: { Connection: 'a/b' } },
    { has: { Connection: 'keep-alive' }, onSocket: 'no' },
  ],
  persistence: [{ has: { Connection: 'close' } }, { onSocket: { afterwards: 'the end' } }],
  framing: [
    { has: { 'Content-Length': null, Connection: 'close' }, onSocket: { afterwards: 'the end' } },
    { onSocket: { afterwards: 'other bytes' } },
  ],
  'transfer coding': [
    { has: { 'Transfer-Encoding': 'chunked' } },
    { status: 204, has: { 'Transfer-Encoding': 'chunked' } },
  ],
  'content length': [
    { has: { 'Content-Length': '3' } },
    { has: { 'Content-Length': '2, 2' } },
    { method: 'HEAD', has: { 'Content-Length': '0' }, plain: {} },
    { ...notModified, has: { ...ETAG, 'Content-Length': '0' } },
  ],
  'no content length': [{ method: 'DELETE', status: 204, has: { 'Content-Length': '0' } }],
  'no content': [
    { method: 'HEAD', content: '[]' },
    { status: 204, content: '[]', has: { 'Content-Type': null } },
    { ...notModified, content: '[]', has: { ...ETAG } },
  ],
  head: [
    { method: 'HEAD', plain: { has: ETAG } },
    { method: 'HEAD', has: { 'Content-Type': 'text/plain' }, plain: {} },
    { method: 'HEAD', plain: { status: 404, content: '[]' } },
  ],
  'not modified': [
    { ...notModified, plain: { has: { ...ETAG, Vary: 'Accept' } } },
    { ...notModified, has: { ...ETAG, 'Cache-Control': 'no-store' } },
    { ...notModified, has: { ...ETAG, 'Content-Type': 'application/json' } },
  ],
  conditions: [
    { status: 412 },
    { ...notModified, sends: { 'If-None-Match': '"2"' } },
    { ...notModified, method: 'PATCH' },
    { sends: { 'If-None-Match': '"2", W/"1"' }, has: ETAG },
    { sends: { 'If-None-Match': '*' }, has: ETAG },
    { sends: { 'If-Match': 'W/"1"' }, has: ETAG },
  ],
  'entity tag': [{ has: { ETag: '1' } }, { has: { ETag: 'w/"1"' } }, { has: { ETag: '"a"b"' } }],
  dates: [
    { has: { Expires: '0' } },
    { has: { Expires: 'Sunday, 06-Nov-94 08:49:37 GMT' } },
    { has: { 'Last-Modified': 'Mon, 06 Nov 1994 08:49:37 GMT' } },
  ],
  date: [
    { has: { Date: null } },
    { has: { Date: 'Sun, 06 Nov 1994 08:49:37 GMT' } },
    { onSocket: { receivedAt: Date.now() - 5000 } },
  ],
  'last modified': [{ has: { 'Last-Modified': 'Fri, 31 Dec 2100 00:00:00 GMT' } }],
  allow: [
    { method: 'PUT', status: 405 },
    { method: 'OPTIONS', status: 204 },
    { method: 'PUT', status: 405, has: { Allow: 'GET, HEAD, PUT' } },
    { method: 'PUT', status: 405, has: { Allow: 'GET' } },
    { method: 'OPTIONS', status: 204, has: { Allow: 'GET, HEAD' } },
    { method: 'OPTIONS', status: 204, has: { Allow: 'OPTIONS, POST, POST' } },
    { method: 'PUT', status: 405, has: { Allow: 'GET HEAD' } },
  ],
  challenge: [
    { status: 401 },
    { status: 401, has: { 'WWW-Authenticate': 'Bearer scope="a", scope="b"' } },
    { status: 401, has: { 'WWW-Authenticate': 'Bearer scope=a b' } },
  ],
  'retry after': [
    { status: 503, has: { 'Retry-After': '1.5' } },
    { status: 503, has: { 'Retry-After': 'soon' } },
  ],
  location: [
    { method: 'POST', status: 201, content: '{}' },
    { status: 308 },
    { has: { Location: '/a b' } },
    { has: { Location: '/%zz' } },
  ],
  'accept patch': [
    { method: 'PATCH', status: 415 },
    { method: 'OPTIONS', status: 204, has: { Allow: 'OPTIONS, PATCH' } },
    { has: { 'Accept-Patch': 'json' } },
  ],
  'content type': [
    { has: { 'Content-Type': null } },
    { has: { 'Content-Type': 'json' } },
    { has: { 'Content-Type': 'application/json; charset' } },
    { method: 'DELETE', status: 204, has: { 'Content-Type': 'application/json' } },
  ],
  json: [{ content: '[' }, { content: '"\xff"' }],
  'content coding': [{ has: { 'Content-Encoding': 'gzip' } }],
  ranges: [{ status: 206 }, { sends: { Range: 'bytes=0-1' }, has: { 'Content-Range': 'bytes 0-1/2' } }],
  vary: [
    { has: { Vary: 'a b' } },
    { has: { Vary: 'Accept, *' } },
    { sends: { Accept: 'text/plain' }, has: { ...ETAG, 'Content-Type': 'text/plain' } },
  ],
  'cache control': [
    { has: { 'Cache-Control': 'private no-cache' } },
    { has: { 'Cache-Control': 'private, private' } },
    { has: { 'Cache-Control': 'no-store, max-age=1' } },
    { has: { 'Cache-Control': 'private, public' } },
    { has: { 'Cache-Control': 'max-age="1"' } },
    { has: { 'Cache-Control': 'max-age' } },
    { has: { 'Cache-Control': 'only-if-cached' } },
    { has: { 'Cache-Control': 'no-cache=ETag' } },
  ],
  'explicit caching': [{ has: { 'Cache-Control': null } }, { status: 404, has: { 'Cache-Control': null } }],
  'shared caches': [
    { sends: { Authorization: 'Bearer a' }, has: { 'Cache-Control': 'public' } },
    { sends: { Authorization: 'Bearer a' }, has: { 'Cache-Control': 's-maxage=60' } },
  ],
  'fields of caches': [
    { has: { Age: '0' } },
    { has: { Pragma: 'no-cache' } },
    { has: { Warning: '199 - "a"' } },
  ],
  links: [
    { has: { Link: '/things; rel="next"' } },
    { has: { Link: '</things>' } },
    { has: { Link: '</a b>; rel="next"' } },
    { has: { Link: '</things>; rel="next"; rel="prev"' } },
    { has: { Link: '</things>; rel="nxt"' } },
  ],
  'problem type': [
    { status: 404, has: { 'Content-Type': 'application/json' } },
    { status: 404, content: '', has: { 'Content-Length': '0' } },
    { has: { 'Content-Type': 'application/problem+json' }, ...problem({ status: 200 }), status: 200 },
  ],
  'problem members': [
    problem({ status: 400 }),
    problem({ status: '404' }),
    problem({ type: 'a b' }),
    problem({ title: null }),
    problem({ detail: 1 }),
    problem({ instance: '/a b' }),
    problem({ 'a-b': 1 }),
    { status: 404, content: '[]' },
  ],
};

test.each(GOOD.map((change) => [JSON.stringify(change), change] as const))(
  'no rule finds anything in %s',
  (_, change) => {
    expect(lint(exchange(change))).toEqual([]);
  },
);

describe.each(Object.entries<HttpRule>(RULES))('%s', (name, { source, says }) => {
  test(`${says} (${source})`, () => {
    const planted = VIOLATIONS[name as keyof typeof RULES];
    expect(planted.length).toBeGreaterThan(0);
    for (const change of planted) {
      const found = lint(exchange(change)).map((finding) => finding.split(' (')[0]);
      expect([change, [...new Set(found)]]).toEqual([change, [name]]);
    }
  });
});
