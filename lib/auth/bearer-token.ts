import { unauthorized } from '../problem.ts';

/** RFC 6750 section 2.1, with the scheme in any case and nothing after the token. */
const CREDENTIALS = /^bearer +([^ ]+)$/i;

/**
 * RFC 7515 section 7.1: three parts in base64url without padding, none of them empty. Neither JSON text begins with a
 * byte order mark (RFC 8259 section 8.1), which decoders drop without a word.
 */
const COMPACT = /^(?!77u_)[\w-]+\.(?!77u_)[\w-]+\.[\w-]+$/;

/** What the last character of a part may be, by the part's length modulo 4: unused bits have to be zero. */
const LAST_CHARACTER = [/[\w-]$/, /$^/, /[AQgw]$/, /[AEIMQUYcgkosw048]$/];

/**
 * The token of an `Authorization` header. Repeated headers arrive joined by a comma, and so are refused.
 *
 * @throws {Problem} unauthorized_error
 */
export function bearerTokenOf(authorization: string | undefined): string {
  if (authorization === undefined) throw unauthorized('there is no Authorization header');
  const token = CREDENTIALS.exec(authorization)?.[1];
  if (token === undefined) throw unauthorized('the Authorization header holds no bearer token');
  return token;
}

/**
 * Checks a token's form before anything in it is believed, and reads its header.
 * Only the canonical form passes: of the many texts that decode to the same bytes, one is the token.
 *
 * @throws {Problem} unauthorized_error
 */
export function readTokenHeader(token: string): Readonly<Record<string, unknown>> {
  if (!COMPACT.test(token)) throw unauthorized('the token is not in compact form');
  if (!token.split('.').every(isCanonical)) throw unauthorized('the token is not canonical base64url');
  return decodedHeader(token);
}

function isCanonical(part: string): boolean {
  return LAST_CHARACTER[part.length % 4]?.test(part) ?? false;
}

function decodedHeader(token: string): Record<string, unknown> {
  try {
    const bytes = Buffer.from(token.slice(0, token.indexOf('.')), 'base64url');
    const header: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (typeof header === 'object' && header !== null && !Array.isArray(header)) {
      return header as Record<string, unknown>;
    }
  } catch {
    // Not UTF-8 or not JSON: the refusal below says it.
  }
  throw unauthorized("the token's header is not a JSON object");
}
