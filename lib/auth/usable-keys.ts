import { KeyObject } from 'node:crypto';
import { importJWK, type JWK } from 'jose';
import type { Algorithm } from '../settings/setting-forms.ts';
import { algorithmOf } from './algorithms.ts';
import { type VerificationKey, verificationKey } from './signature.ts';

/** A key of the provider, ready for use: as published, except for `alg`. */
export type UsableKey = { readonly jwk: JWK; readonly key: VerificationKey };

const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 65_537n;

/** OpenSSL does not verify with larger keys. */
const MAX_RSA_BITS = 16_384;
const MAX_RSA_EXPONENT = 2n ** 64n - 1n;

/**
 * The keys of a JWK Set (RFC 7517 section 5) that may verify a token: public, asymmetric, meant for signatures with an
 * accepted algorithm, and strong enough (RFC 8725 section 3.2). All other keys are left out. Each key has the one
 * algorithm that it serves: without `alg` it would be used for any algorithm that fits its type.
 */
export async function usableKeys(
  document: unknown,
  accepted: readonly Algorithm[],
): Promise<readonly UsableKey[]> {
  const keys = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) return [];
  const judged = await Promise.all(keys.map((key) => usable(key, accepted)));
  return judged.filter((key) => key !== undefined);
}

async function usable(key: unknown, accepted: readonly Algorithm[]): Promise<UsableKey | undefined> {
  if (typeof key !== 'object' || key === null || 'd' in key || 'k' in key) return undefined;
  const jwk = key as JWK;
  const alg = algorithmOf(jwk, accepted);
  if (!alg || !isForVerification(jwk)) return undefined;
  if (jwk.kty === 'RSA' && !isUsableRsa(jwk)) return undefined;
  const publicKey = await imported(jwk, alg);
  return publicKey && { jwk: { ...jwk, alg }, key: verificationKey(publicKey, alg) };
}

/** RFC 7517 sections 4.2 and 4.3. */
function isForVerification({ use, key_ops }: JWK): boolean {
  if (use !== undefined && use !== 'sig') return false;
  return key_ops === undefined || (Array.isArray(key_ops) && key_ops.includes('verify'));
}

function isUsableRsa({ n, e }: JWK): boolean {
  if (typeof n !== 'string' || typeof e !== 'string') return false;
  const [bits, exponent] = [bitLength(n), integerOf(e)];
  return (
    bits >= MIN_RSA_BITS &&
    bits <= MAX_RSA_BITS &&
    exponent >= MIN_RSA_EXPONENT &&
    exponent <= MAX_RSA_EXPONENT
  );
}

const bitLength = (base64url: string): number => integerOf(base64url).toString(2).length;

const integerOf = (base64url: string): bigint =>
  BigInt(`0x0${Buffer.from(base64url, 'base64url').toString('hex')}`);

/**
 * Only the import finds some faults, for example a point that is not on its curve. WebCrypto imports a public key only
 * for `verify`; other uses have been checked before.
 */
async function imported(jwk: JWK, algorithm: Algorithm): Promise<KeyObject | undefined> {
  try {
    const key = await importJWK({ ...jwk, key_ops: ['verify'] }, algorithm, { extractable: true });
    return key instanceof Uint8Array || key.type !== 'public' ? undefined : KeyObject.from(key);
  } catch {
    return undefined;
  }
}
