import { KeyObject } from 'node:crypto';
import { type CryptoKey, decodeJwt, decodeProtectedHeader, importJWK, type JWK, type JWTPayload } from 'jose';
import { unauthorized } from '../http/problem.ts';
import type { Algorithm } from '../settings/setting-forms.ts';
import type { Settings } from '../settings/settings.ts';
import { isStorable } from '../text.ts';

// The rules that jose does not have, in the order in which a token meets them: form, header, keys, claims.

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

/** The reason for a payload without claims. */
export const NO_PAYLOAD = "the token's payload is not a JSON object";

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

/** All names of an algorithm. `Ed25519` (RFC 9864 section 2.2) is another name of `EdDSA`, in a key and in a token. */
export function listNames(algorithm: Algorithm): readonly string[] {
  return algorithm === 'EdDSA' ? ['EdDSA', 'Ed25519'] : [algorithm];
}

function isNameOf(algorithm: Algorithm, name: unknown): boolean {
  return listNames(algorithm).some((known) => known === name);
}

/** `typ` is a media type, in any case. `application/` may be omitted (RFC 7515 section 4.1.9). */
function isTokenType(typ: unknown): boolean {
  return typeof typ === 'string' && /^(?:application\/)?(?:at\+)?jwt$/i.test(typ);
}

/** A key of the provider: as published, except that `alg` is its one algorithm; and the same key, imported for it. */
export type UsableKey = { readonly jwk: JWK; readonly algorithm: Algorithm; readonly imported: CryptoKey };

const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 65_537n;

/** OpenSSL does not verify with larger keys. */
const MAX_RSA_BITS = 16_384;
const MAX_RSA_EXPONENT = 2n ** 64n - 1n;

/**
 * Imports the keys of a JWK Set (RFC 7517 section 5) that may verify a token: public, asymmetric, meant for signatures
 * with an accepted algorithm, and strong enough (RFC 8725 section 3.2). All other keys are left out.
 */
export async function importUsableKeys(
  document: unknown,
  accepted: readonly Algorithm[],
): Promise<readonly UsableKey[]> {
  const keys = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) return [];
  const imported = await Promise.all(keys.map((key) => importUsableKey(key, accepted)));
  return imported.filter((key) => key !== undefined);
}

/** A key serves one algorithm: its own or, if it names none, the first accepted one that fits its type and curve. */
async function importUsableKey(
  published: unknown,
  accepted: readonly Algorithm[],
): Promise<UsableKey | undefined> {
  const key = normalized(published);
  if (!isForVerification(key)) return undefined;
  for (const algorithm of accepted) {
    if (key.alg !== undefined && !isNameOf(algorithm, key.alg)) continue;
    const imported = await importKey(key, algorithm);
    if (imported) return { jwk: { ...key, alg: algorithm }, algorithm, imported };
  }
  return undefined;
}

/** Some providers write null instead of leaving a member out. The order of members means nothing. */
function normalized(published: unknown): unknown {
  const members = Object.entries(published ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries(members.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** A public key for signatures (RFC 7517 sections 4.2 and 4.3). */
function isForVerification(value: unknown): value is JWK {
  if (typeof value !== 'object' || value === null || 'd' in value || 'k' in value) return false;
  const { use, key_ops }: JWK = value;
  if (use !== undefined && use !== 'sig') return false;
  return key_ops === undefined || (Array.isArray(key_ops) && key_ops.includes('verify'));
}

/** Undefined for a key of another type or curve, and for a key with a fault, for example a point that is not on its curve. */
async function importKey(jwk: JWK, algorithm: Algorithm): Promise<CryptoKey | undefined> {
  try {
    const key = await importJWK({ ...jwk, key_ops: ['verify'] }, algorithm, { extractable: true });
    return key instanceof Uint8Array || key.type !== 'public' || !isStrong(key) ? undefined : key;
  } catch {
    return undefined;
  }
}

function isStrong(key: CryptoKey): boolean {
  const { modulusLength: bits, publicExponent: exponent } = KeyObject.from(key).asymmetricKeyDetails ?? {};
  if (bits === undefined || exponent === undefined) return true;
  const isLarge = bits >= MIN_RSA_BITS && exponent >= MIN_RSA_EXPONENT;
  return isLarge && bits <= MAX_RSA_BITS && exponent <= MAX_RSA_EXPONENT;
}

/** The claims of an accepted token. `sub` is a non-empty string, and `exp` is in seconds since 1970. */
export type Claims = Readonly<Record<string, unknown>> & { readonly exp: number; readonly sub: string };

/**
 * Whether `iss`, `aud` and `exp` of a token would be accepted. Nothing of it is proven: this only decides whether its
 * signature may cause a fetch of the keys.
 */
export function hasExpectedClaims(
  token: string,
  { issuer, audience, clockTolerance }: Pick<Settings['oauth'], 'issuer' | 'audience' | 'clockTolerance'>,
): boolean {
  try {
    const { iss, aud, exp } = decodeJwt(token);
    const isCurrent =
      Number(exp) > Math.floor(Date.now() / 1000) - clockTolerance && Number(exp) <= MAX_DATE_S;
    const isForService = [aud].flat().some((name) => audience.some((own) => own === name));
    return iss === issuer && isForService && typeof exp === 'number' && isCurrent;
  } catch {
    return false;
  }
}

/** The year 9999. A larger number is not a date (RFC 7519 section 2, NumericDate). */
const MAX_DATE_S = 253_402_300_799;

/**
 * Demands what jose does not check in the payload of a token that it has verified. A refusal names the claim, for the
 * log, but not its value.
 *
 * @throws {Problem} unauthorized_error
 */
export function demandClaims(payload: JWTPayload): Claims {
  const { exp, sub } = payload;
  if (exp === undefined || exp > MAX_DATE_S) throw unauthorized('the token has no valid "exp"');
  if (typeof sub !== 'string' || sub === '') throw unauthorized('the token has no sub');
  if (!isStorable(sub)) throw unauthorized("the token's sub holds U+0000 or a lone surrogate");
  // RFC 8705 section 3 and RFC 9449 section 6: a caller that cannot prove the binding must not use the token.
  if (Object.hasOwn(payload, 'cnf')) throw unauthorized('the token is bound to a key or a certificate (cnf)');
  return { ...payload, exp, sub };
}
