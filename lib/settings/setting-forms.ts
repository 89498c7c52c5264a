import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isIP } from 'node:net';
import * as z from 'zod';

const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const;

/** The signature algorithms of tokens: only asymmetric ones (RFC 8725 section 3.1). */
export const ALGORITHMS = [...RSA_ALGORITHMS, 'ES256', 'ES384', 'ES512', 'EdDSA'] as const;

export type Algorithm = (typeof ALGORITHMS)[number];

/**
 * Header names that have a meaning already, so that no setting may give them another one. In this order: RFC 9110 sections
 * 18.4 and 7.6.1, RFC 9111 section 8.1, RFC 9112 section 12.1, RFC 6265 section 9, W3C Trace Context section 3, and other
 * fields that this service reads or writes. `__proto__` cannot be a member of an object.
 */
const RESERVED_HEADER_NAMES = `
  * Accept Accept-Charset Accept-Encoding Accept-Language Accept-Ranges Allow Authentication-Info Authorization
  Connection Content-Encoding Content-Language Content-Length Content-Location Content-Range Content-Type Date ETag
  Expect From Host If-Match If-Modified-Since If-None-Match If-Range If-Unmodified-Since Last-Modified Location
  Max-Forwards Proxy-Authenticate Proxy-Authentication-Info Proxy-Authorization Range Referer Retry-After Server TE
  Trailer Upgrade User-Agent Vary Via WWW-Authenticate
  Keep-Alive Proxy-Connection
  Age Cache-Control Expires Pragma Warning
  Close MIME-Version Transfer-Encoding
  Cookie Cookie2 Set-Cookie Set-Cookie2
  traceparent tracestate
  Accept-Patch Content-Security-Policy Idempotency-Key Idempotency-Replayed Link Referrer-Policy
  X-Content-Type-Options X-Forwarded-Proto __proto__`
  .toLowerCase()
  .split(/\s+/);

const WHOLE = /^\d{1,15}$/;
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

const TRUE = ['true', '1', 'yes', 'on'];
const FALSE = ['false', '0', 'no', 'off'];

/** A setting whose text is read by `read`, which returns undefined for a text that the setting does not accept. */
function setting<Value>(accepts: string, read: (given: string) => Value | undefined) {
  return z
    .string({ error: accepts })
    .transform((given, context): Value => {
      const value = read(given);
      if (value !== undefined) return value;
      context.addIssue({ code: 'custom', message: accepts });
      return z.NEVER;
    })
    .meta({ accepts });
}

/** Any text, as it is: a secret. */
export const secret = setting('text', (given) => given);

/** A text without control characters. Quotes at its ends are those of a file of variables, and never part of a value. */
export function text(accepts = 'text') {
  return setting(`${accepts}, without quotes around it`, (given) => (isPlain(given) ? given : undefined));
}

function isPlain(given: string): boolean {
  return !/^["']|["']$|\p{Cc}/u.test(given);
}

/** One of `names`, as written. */
export function choice<const Name extends string>(...names: Name[]) {
  return setting(listed(names), (given) => names.find((name) => name === given));
}

/** One of `names`, in any case. */
export function anyCase<const Name extends string>(...names: Name[]) {
  return setting(`${listed(names)}, any case`, (given) => names.find((name) => name === given.toLowerCase()));
}

function listed(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

/** A boolean. */
export const flag = setting('`true`/`false`, `1`/`0`, `yes`/`no`, `on`/`off`, any case', (given) => {
  if (TRUE.includes(given.toLowerCase())) return true;
  return FALSE.includes(given.toLowerCase()) ? false : undefined;
});

/** An integer in decimal digits. */
export function whole(min: number, max: number, unit = '') {
  const accepts = `a whole number from ${min} to ${max} ${unit}`.trim();
  return setting(accepts, (given) => numberWithin(WHOLE, given, min, max));
}

/** One value or several, separated by commas, each read by `one`. `accepts` describes them. */
function list<Value>(accepts: string, one: (given: string) => Value | undefined) {
  return setting(accepts, (given): readonly Value[] | undefined => {
    const values = given.split(',').map((item) => one(item.trim()));
    return values.every((value) => value !== undefined) ? values : undefined;
  });
}

/** A name of a host: labels of letters, digits, hyphens and underscores. */
const HOST_NAME = /^(?=.{1,253}$)[\p{L}\p{N}_-]{1,63}(?:\.[\p{L}\p{N}_-]{1,63})*\.?$/u;

export const host = setting('an IP address or host name', readHost);

/** Hosts and paths of sockets, separated by commas. */
export const hosts = list(
  'a host name, an IP address or the path of a socket, or several separated by commas',
  (given) => (given.startsWith('/') && isPlain(given) ? given : readHost(given)),
);

/** An IPv6 address may have brackets. */
function readHost(given: string): string | undefined {
  const [, inBrackets] = /^\[(.+)\]$/.exec(given) ?? [];
  if (inBrackets !== undefined) return isIP(inBrackets) === 6 ? inBrackets : undefined;
  return isIP(given) > 0 || HOST_NAME.test(given) ? given : undefined;
}

export const ports = list(
  'a whole number from 1 to 65535, or one for each host, separated by commas',
  (given) => numberWithin(WHOLE, given, 1, 65_535),
);

/** A duration in seconds, in any decimal form of a number. */
export function seconds(min: number, max: number) {
  const range = min === Number.NEGATIVE_INFINITY ? `at most ${max}` : `${min} to ${max}`;
  return setting(`seconds, ${range}`, (given) => numberWithin(DECIMAL, given, min, max));
}

function numberWithin(pattern: RegExp, given: string, min: number, max: number): number | undefined {
  const value = pattern.test(given) ? Number(given) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

export const httpUrl = setting('an http(s) URL without credentials', (given) =>
  isHttpUrl(given) ? given : undefined,
);

/** `URL` skips white space and control characters, which other readers of the text do not. */
function isHttpUrl(given: string): boolean {
  const { protocol = '', username, password } = URL.parse(given) ?? {};
  return /^https?:$/.test(protocol) && username === '' && password === '' && !/[\s\p{Cc}]/u.test(given);
}

/** Header fields as `name=value`, separated by commas. The values are percent-encoded. */
export const headerFields = list('header fields as `name=value`, separated by commas', (given) => {
  const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(given) ?? [];
  try {
    validateHeaderName(name.trim());
    validateHeaderValue(name.trim(), decodeURIComponent(value.trim()));
    return given;
  } catch {
    return undefined;
  }
});

/** A header name without another meaning: a token of RFC 9110 section 5.6.2. */
export const headerName = setting(
  'a header name that HTTP, cookies, Trace Context and this API do not use',
  (given) => {
    const isToken = /^[!#$%&'*+\-.^_`|~\w]+$/.test(given);
    return isToken && !RESERVED_HEADER_NAMES.includes(given.toLowerCase()) ? given : undefined;
  },
);

export const source = setting('a file path or an http(s) URL without credentials', (given) => {
  const isSource = /^[a-z][a-z\d+.-]*:/i.test(given) ? isHttpUrl(given) : isPlain(given);
  return isSource ? given : undefined;
});

export const texts = list('text, without quotes around it, or several separated by commas', (given) =>
  given !== '' && isPlain(given) ? given : undefined,
);

export const algorithms = list(`a list of ${ALGORITHMS.join(', ')}`, (given) =>
  ALGORITHMS.find((known) => known === given),
);
