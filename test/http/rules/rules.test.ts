import { describe, expect, test } from 'vitest';
import type { HttpResponse } from '../../stage/raw-request.ts';
import type { HttpExchange } from './exchange.ts';
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
  const isEmpty = status === 204 || status === 304;
  const usual = status < 400 ? '[]' : JSON.stringify({ ...PROBLEM, status });
  const text = content ?? (isEmpty || method === 'HEAD' ? '' : usual);
  const fields = {
    Date: new Date().toUTCString(),
    'Cache-Control': 'private, no-cache',
    'Content-Length': isEmpty ? null : String((method === 'HEAD' ? usual : text).length),
    'Content-Type': isEmpty ? null : `application/${status < 400 ? 'json' : 'problem+json'}`,
    ...has,
  };
  return {
    status,
    fields: Object.entries(fields).flatMap(([name, value]) =>
      value === null ? [] : [value].flat().map((one): [string, string] => [name, one as string]),
    ),
    content: Buffer.from(text, 'latin1'),
    ...(onSocket !== 'no' && {
      onSocket: { statusLine: `HTTP/1.1 ${status} Reason`, afterwards: 'a response', ...onSocket },
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
  { sends: { Connection: 'close' }, onSocket: { afterwards: 'the end' } },
  { method: 'HEAD', plain: {} },
  notModified,
  { sends: { 'If-None-Match': '"2"' }, has: ETAG },
  { sends: { 'If-Match': '"0", "1"' }, has: ETAG },
  { method: 'OPTIONS', status: 204, has: { Allow: 'GET, HEAD, OPTIONS' } },
  { method: 'PUT', status: 405, has: { Allow: 'GET, HEAD' } },
  { method: 'PATCH', status: 415, has: { 'Accept-Patch': 'application/json, application/merge-patch+json' } },
  { method: 'POST', status: 201, content: '[{}]' },
  { has: { Link: '</things?cursor=a%20b>; rel="next"' } },
  problem({ errors: [], type: 'urn:svc:error:not_found_error' }),
  { target: '/%zz?a', ...problem({ instance: '/%zz' }) },
];

/** What breaks each rule. */
const VIOLATIONS: Readonly<Record<string, readonly Change[]>> = {
  'status line': [
    { onSocket: { statusLine: 'HTTP/1.0 200 OK' } },
    { onSocket: { statusLine: 'HTTP/1.1 200' } },
  ],
  'field forms': [
    { has: { 'X-Request-ID': ' a' } },
    { has: { ETag: ['"1"', '"1"'] } },
    { has: { ETag: 'w/"1"' } },
    { has: { Location: '/a b' } },
    { has: { 'Cache-Control': 'public' } },
    { has: { Link: '</a b>; rel="next"' } },
    { method: 'PUT', status: 405, has: { Allow: 'GET' } },
    { status: 401, has: { 'WWW-Authenticate': 'Bearer scope=a b' } },
    { has: { 'Content-Type': 'application/json; charset' } },
    { has: { Date: 'Sunday, 06-Nov-94 08:49:37 GMT' } },
    { has: { Vary: '1' } },
    { has: { 'Content-Length': '2, 2' } },
    { has: { Connection: 'a/b' } },
    { has: { 'Accept-Patch': 'json' } },
    { status: 503, has: { 'Retry-After': 'soon' } },
    { method: 'PUT', status: 405, has: { Allow: 'GET, HEAD, GET' } },
    { method: 'PUT', status: 405, has: { Allow: 'GET HEAD' } },
    { has: { 'Idempotency-Replayed': '1' } },
    { has: { 'Keep-Alive': '5', Connection: 'keep-alive' } },
    { has: { 'X-Content-Type-Options': 'sniff' } },
  ],
  presence: [
    { status: 401 },
    { status: 403 },
    { status: 308 },
    { status: 404, has: { 'Cache-Control': null } },
    { method: 'PATCH', status: 415 },
    { method: 'DELETE', status: 204, has: { 'Transfer-Encoding': 'chunked' } },
    { method: 'DELETE', status: 204, has: { 'Content-Type': 'application/json' } },
    { method: 'POST', status: 201, content: '{}' },
    { method: 'PUT', status: 405 },
    { method: 'OPTIONS', status: 204 },
    { method: 'OPTIONS', status: 204, has: { Allow: 'OPTIONS, PATCH' } },
    { has: { Date: null } },
    { has: { 'Cache-Control': null } },
    { has: { 'Content-Type': null }, content: 'x' },
    { method: 'DELETE', status: 204, has: { 'Content-Length': '0' } },
    { has: { 'Transfer-Encoding': 'chunked' } },
    { ...notModified, has: { ...ETAG, 'Content-Type': 'application/json' } },
  ],
  'connection fields': [
    { has: { 'Keep-Alive': 'timeout=5' } },
    { has: { Connection: 'keep-alive' }, onSocket: 'no', plain: {} },
  ],
  persistence: [{ has: { Connection: 'close' } }, { onSocket: { afterwards: 'the end' } }],
  framing: [
    { has: { 'Content-Length': null, Connection: 'close' }, onSocket: { afterwards: 'the end' } },
    { onSocket: { afterwards: 'other bytes' } },
  ],
  'content length': [
    { has: { 'Content-Length': '3' } },
    { method: 'HEAD', has: { 'Content-Length': '0' }, plain: {} },
    { ...notModified, has: { ...ETAG, 'Content-Length': '0' } },
  ],
  'no content': [
    { method: 'HEAD', content: '[]' },
    { method: 'DELETE', status: 204, content: '[]' },
    { ...notModified, content: '[]' },
  ],
  head: [
    { method: 'HEAD', plain: { has: ETAG } },
    { method: 'HEAD', plain: { status: 404, content: '[]' } },
  ],
  'not modified': [
    { ...notModified, plain: { has: { ETag: 'W/"1"' } } },
    { ...notModified, has: { ...ETAG, 'Cache-Control': 'no-store' } },
  ],
  'problem type': [
    { status: 404, has: { 'Content-Type': 'application/json' } },
    { has: { 'Content-Type': 'application/problem+json' }, ...problem({ status: 200 }), status: 200 },
    { status: 404, content: '' },
  ],
  'problem members': [
    problem({ status: 400 }),
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
    const planted = VIOLATIONS[name] ?? [];
    expect(planted.length).toBeGreaterThan(0);
    for (const change of planted) {
      const found = lint(exchange(change)).map((finding) => finding.split(' (')[0]);
      expect([change, found]).toEqual([change, expect.arrayContaining([name])]);
    }
  });
});
