/** RFC 9110 section 18.4. */
const HTTP_SEMANTICS = `
  * Accept Accept-Charset Accept-Encoding Accept-Language Accept-Ranges Allow Authentication-Info Authorization
  Connection Content-Encoding Content-Language Content-Length Content-Location Content-Range Content-Type Date ETag
  Expect From Host If-Match If-Modified-Since If-None-Match If-Range If-Unmodified-Since Last-Modified Location
  Max-Forwards Proxy-Authenticate Proxy-Authentication-Info Proxy-Authorization Range Referer Retry-After Server TE
  Trailer Upgrade User-Agent Vary Via WWW-Authenticate`;

/** RFC 9110 section 7.6.1: connection-specific fields that are defined elsewhere. */
const CONNECTIONS = 'Keep-Alive Proxy-Connection';

/** RFC 9111 section 8.1. */
const CACHING = 'Age Cache-Control Expires Pragma Warning';

/** RFC 9112 section 12.1. */
const HTTP_1_1 = 'Close MIME-Version Transfer-Encoding';

/** RFC 6265 section 9. */
const COOKIES = 'Cookie Cookie2 Set-Cookie Set-Cookie2';

/** W3C, Trace Context, section 3. */
const TRACE_CONTEXT = 'traceparent tracestate';

/** Other header fields that this service reads or writes. `__proto__` cannot be a member of an object. */
const OF_THIS_API = `
  Accept-Patch Content-Security-Policy Idempotency-Key Idempotency-Replayed Link Referrer-Policy
  X-Content-Type-Options X-Forwarded-Proto __proto__`;

const RESERVED = [HTTP_SEMANTICS, CONNECTIONS, CACHING, HTTP_1_1, COOKIES, TRACE_CONTEXT, OF_THIS_API];

/** Whether a header name, in any case, already has a meaning, so that no setting may give it another one. */
export function isReservedHeaderName(name: string): boolean {
  return RESERVED.some((names) => names.toLowerCase().split(/\s+/).includes(name.toLowerCase()));
}
