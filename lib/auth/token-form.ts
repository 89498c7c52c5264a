import { decodeProtectedHeader } from 'jose';
import { unauthorized } from '../http/problem.ts';
import type { Algorithm } from '../settings/setting-forms.ts';
import { isNameOf } from './algorithm-names.ts';
import { NO_PAYLOAD } from './claims.ts';

/** Algorithm and key of a token's signature, as named in its header. */
export type TokenHeader = { readonly alg: Algorithm; readonly kid: string | undefined };

/**
 * Reads the header of a token, whose form must be strict. Only `alg` and `kid` choose a key: `jwk`, `jku`, `x5u` and `x5c`
 * are never read.
 *
 * @throws {Problem} unauthorized_error
 */
export function readHeader(token: string, accepted: readonly Algorithm[]): TokenHeader {
  demandStrictForm(token);
  const header = decodeHeader(token);
  const { typ, kid } = header;
  const alg = accepted.find((algorithm) => isNameOf(algorithm, header.alg));
  if (!alg) throw unauthorized("the token's alg is not accepted");
  if (typ !== undefined && !isTokenType(typ)) throw unauthorized("the token's typ is not accepted");
  if (kid !== undefined && typeof kid !== 'string') throw unauthorized("the token's kid is not a string");
  if (Object.hasOwn(header, 'crit')) throw unauthorized('the token has critical header parameters');
  // RFC 7797 section 6: `b64` must be listed in `crit`.
  if (Object.hasOwn(header, 'b64')) throw unauthorized('the token has the header parameter b64');
  return { alg, kid };
}

/**
 * Demands three parts in canonical base64url without padding (RFC 7515 section 7.1). jose also accepts other texts of the
 * same bytes, and drops a byte order mark, which JSON must not have (RFC 8259 section 8.1).
 */
function demandStrictForm(token: string): void {
  const parts = token.split('.', 4);
  const [header = '', payload = ''] = parts;
  if (parts.length !== 3 || parts.includes('')) throw unauthorized('the token is not in compact form');
  if (!parts.every(isCanonical)) throw unauthorized('the token is not canonical base64url');
  if (header.startsWith(BYTE_ORDER_MARK)) throw unauthorized(NO_HEADER);
  if (payload.startsWith(BYTE_ORDER_MARK)) throw unauthorized(NO_PAYLOAD);
}

/** The bytes EF BB BF in base64url. */
const BYTE_ORDER_MARK = '77u_';

const NO_HEADER = "the token's header is not a JSON object";

/** Node's decoder skips what is not base64, so the bytes must encode to the same text. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part;
}

function decodeHeader(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeProtectedHeader(token);
  } catch {
    throw unauthorized(NO_HEADER);
  }
}

/** `typ` is a media type, in any case. `application/` may be omitted (RFC 7515 section 4.1.9). */
function isTokenType(typ: unknown): boolean {
  return typeof typ === 'string' && /^(?:application\/)?(?:at\+)?jwt$/i.test(typ);
}
